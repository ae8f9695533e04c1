-- Releases a fair lock whoever holds it, if that is still one of the owners
-- that the caller saw: a late request must not free the lock of the next holder.
-- Then it goes to whose turn it is.
-- KEYS lock queue timeouts alive
-- ARGV channel allowance_ms owner...
-- returns 1 if the lock was released, 0 if none of these owners has it
local queue, timeouts, alive, allowance = KEYS[2], KEYS[3], KEYS[4], tonumber(ARGV[2])
-- include fairlock
for i = 3, #ARGV do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1 then
    redis.call('DEL', KEYS[1])
    give(ARGV[1])
    return 1
  end
end
return 0
