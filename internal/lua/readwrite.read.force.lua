-- Releases the read holds of the owners that the caller saw, and of nobody else.
-- KEYS lock
-- ARGV channel owner...
-- returns 1 if any of these owners was reading, else 0
-- include readwrite.timeout
-- include readwrite.longest
if redis.call('HGET', KEYS[1], 'mode') ~= 'read' then
  return 0
end
local found, counts = 0, count_holds('')
if not counts then
  return too_many()
end
for i = 2, #ARGV do
  for n = 1, counts[ARGV[i]] or 0 do
    redis.call('DEL', timeout_key(KEYS[1], ARGV[i], n))
  end
  found, counts[ARGV[i]] = math.max(found, redis.call('HDEL', KEYS[1], ARGV[i])), nil
end
if found == 0 then
  return 0
end
local longest = longest_read(counts)
if longest > 0 then
  redis.call('PEXPIRE', KEYS[1], longest)
else
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[1], '0')
end
return 1
