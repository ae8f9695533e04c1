-- Releases the read holds of the owners that the caller saw, and of nobody else.
-- KEYS lock proofs... (none)
-- ARGV channel owner...
-- returns 1 if any of these owners was reading, else 0; if it is not known who else
-- reads, the keys that the release has to have in KEYS to do the rest
-- include readwrite.longest
local lock, counts, forced = KEYS[1], count_holds(''), {}
if redis.call('HGET', lock, 'mode') ~= 'read' then
  return 0
end
if not counts then
  return too_many()
end
for i = 2, #ARGV do
  forced[ARGV[i]], counts[ARGV[i]] = counts[ARGV[i]], nil
end
if not next(forced) then
  return 0
end
local longest, unseen = longest_read(lock, counts)
for owner, n in pairs(forced) do
  redis.call('HDEL', lock, owner)
  for i = 1, n do
    redis.pcall('DEL', timeout_key(lock, owner, i))
  end
end
if #unseen > 0 then
  return unseen
elseif longest > 0 then
  redis.call('PEXPIRE', lock, longest)
else
  redis.call('DEL', lock)
  redis.call('PUBLISH', ARGV[1], '0')
end
return 1
