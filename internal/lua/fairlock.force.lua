-- Releases a fair lock whoever holds it, if that is still one of the owners
-- that the caller saw: a late request must not free the lock of the next holder.
-- Then it goes to whose turn it is; so does a free one, of whose queue only those may be
-- left who have died.
-- KEYS lock queue timeouts alive
-- ARGV channel allowance_ms owner...
-- returns 1 if the lock was released, 0 if none of these owners has it
-- include forced
local queue, timeouts, alive, allowance = KEYS[2], KEYS[3], KEYS[4], tonumber(ARGV[2])
-- include fairlock
local some = redis.call('HRANDFIELD', KEYS[1], 2) -- of a fair lock there is one
if some[2] then
  return forced(3)
end
local freed = 0
for i = 3, #ARGV do
  if ARGV[i] == some[1] then
    freed = 1
  end
end
if freed == 1 or not some[1] then
  give(ARGV[1], some[1])
end
return freed
