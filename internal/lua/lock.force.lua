-- Releases a lock whoever holds it, if that is still one of the owners that
-- the caller saw: a late request must not free the lock of the next holder.
-- KEYS lock
-- ARGV channel owner... (no channel: nobody is told)
-- returns 1 if the lock was released, 0 if none of these owners has it
local freed = 0
for i = 2, #ARGV, 1000 do -- Lua cannot pass any number of arguments
  freed = freed + redis.call('HDEL', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
if freed > 0 and ARGV[1] ~= '' then
  redis.call('PUBLISH', ARGV[1], '0')
end
return math.min(1, freed)
