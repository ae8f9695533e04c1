-- Looks at a latch.
-- KEYS latch
-- returns its count as a string, or nil if there is none
return redis.call('GET', KEYS[1])
