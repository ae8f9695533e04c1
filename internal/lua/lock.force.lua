-- Releases a lock whoever holds it, if that is still one of the owners that
-- the caller saw: a late request must not free the lock of the next holder.
-- KEYS lock
-- ARGV channel owner... (no channel: nobody is told)
-- returns 1 if the lock was released, 0 if none of these owners has it
-- include forced
local freed = forced(2)
if freed == 1 and ARGV[1] ~= '' then
  redis.call('PUBLISH', ARGV[1], '0')
end
return freed
