-- Releases a lock whoever holds it, if that is still one of the owners that
-- the caller saw: a late request must not free the lock of the next holder.
-- KEYS lock
-- ARGV channel owner... (no channel: nobody is told)
-- returns 1 if the lock was released, 0 if none of these owners has it
for i = 2, #ARGV do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1 then
    redis.call('DEL', KEYS[1])
    if ARGV[1] ~= '' then
      redis.call('PUBLISH', ARGV[1], '0')
    end
    return 1
  end
end
return 0
