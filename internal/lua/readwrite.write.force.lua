-- Releases a lock that is held to write, whoever holds it, with what its owner
-- reads, if that is still one of the owners that the caller saw.
-- KEYS lock
-- ARGV channel owner...
-- returns 1 if the lock was released, 0 if none of these owners writes
-- include readwrite.timeout
-- include readwrite.counts
local lock, counts = KEYS[1], count_holds('')
if not counts then
  return too_many()
end
for i = 2, #ARGV do
  if redis.call('HEXISTS', lock, ARGV[i] .. ':write') == 1 then
    for n = 1, counts[ARGV[i]] or 0 do
      redis.pcall('DEL', timeout_key(lock, ARGV[i], n))
    end
    redis.call('DEL', lock)
    redis.call('PUBLISH', ARGV[1], '1')
    return 1
  end
end
return 0
