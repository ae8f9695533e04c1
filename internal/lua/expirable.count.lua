-- Counts the permits of a semaphore.
-- KEYS free timeouts
-- ARGV channel
-- returns {how many are free as a string, how many are given}
local free, timeouts = KEYS[1], KEYS[2]
-- include expirable
local over = ended()
local given = there and redis.call('ZCARD', timeouts) - over or 0
sweep(ARGV[1], over)
return {redis.call('GET', free) or '0', given}
