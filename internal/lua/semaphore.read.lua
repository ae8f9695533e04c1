-- Reads how many permits a semaphore has.
-- KEYS semaphore
-- ARGV (none)
-- returns how many as a string, or nil if there is no such semaphore
return redis.call('GET', KEYS[1])
