-- Releases a fair lock whoever holds it, if that is still one of the owners
-- that the caller saw: a late request must not free the lock of the next holder.
-- Then it goes to whose turn it is; so does a free one, of whose queue only those may be
-- left who have died. What others have as well, which is no fair lock, stays theirs.
-- KEYS lock queue timeouts alive
-- ARGV channel allowance_ms owner... (each once)
-- returns 1 if the lock was released, 0 if none of these owners has it
local queue, timeouts, alive, allowance = KEYS[2], KEYS[3], KEYS[4], tonumber(ARGV[2])
-- include fairlock
local had = {}
for i = 3, #ARGV do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1 then
    had[#had + 1] = ARGV[i]
  end
end
give(ARGV[1], had, #had < redis.call('HLEN', KEYS[1]))
return math.min(1, #had)
