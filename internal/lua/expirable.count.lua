-- Counts the permits of a semaphore.
-- KEYS free timeouts
-- ARGV channel
-- returns {how many are free as a string, how many are given}
local free, timeouts = KEYS[1], KEYS[2]
-- include expirable
sweep(ARGV[1])
return {redis.call('GET', free) or '0', there and redis.call('ZCARD', timeouts) or 0}
