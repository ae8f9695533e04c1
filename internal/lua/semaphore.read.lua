-- Reads how many permits a semaphore has.
-- KEYS semaphore
-- ARGV (none)
-- returns how many; 0 if there is no such semaphore
return tonumber(redis.call('GET', KEYS[1]) or 0)
