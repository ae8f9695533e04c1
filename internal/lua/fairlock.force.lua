-- Releases a fair lock whoever holds it, if that is still one of the owners
-- that the caller saw: a late request must not free the lock of the next holder.
-- Then it goes to whose turn it is; so does a free one, of whose queue only those may be
-- left who have died.
-- KEYS lock queue timeouts alive
-- ARGV channel allowance_ms owner...
-- returns 1 if the lock was released, 0 if none of these owners has it
local queue, timeouts, alive, allowance = KEYS[2], KEYS[3], KEYS[4], tonumber(ARGV[2])
-- include fairlock
local freed = 0
for i = 3, #ARGV do
  freed = math.max(freed, redis.call('HDEL', KEYS[1], ARGV[i]))
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  give(ARGV[1])
end
return freed
