-- Arrives at a barrier, in the generation that is named. If another one gathers,
-- nothing is changed: so a request that comes late is counted nowhere.
-- KEYS barrier record alive ended
-- ARGV generation id client parties lease_ms channel
-- returns {how it stands, detail, index}: 'waits', or how the generation has
-- ended and who has ended it, if the caller is in it; else the generation that
-- gathers behind 'current', or behind 'forgotten' if it is not known whether the
-- caller was in the other one; or 'parties' and how many make one
local generation, id, client, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[6]
local parties, lease_ms = tonumber(ARGV[4]), tonumber(ARGV[5])
-- include barrier
-- include barrier.alive
local index, count = unpack(redis.call('HMGET', record, id, 'arrived'))
if index and index ~= 'gone' then
  return {'waits', '', tonumber(index)}
end
local how, who, arrived = ending()
if how then
  local _, at = string.find(arrived, ' ' .. id .. '=', 1, true)
  if at then
    return {how, who, tonumber(string.match(string.sub(arrived, at + 1, at + 10), '^%d+'))}
  end
end
local current, set = unpack(redis.call('HMGET', barrier, 'generation', 'parties'))
if not current then
  current, set = id .. ':1', parties
  redis.call('HSET', barrier, 'generation', current, 'parties', parties)
  redis.call('PEXPIRE', barrier, kept)
end
if current ~= generation and not how then
  return {'forgotten', current, -1}
end
if tonumber(set) ~= parties then
  return {'parties', set, -1}
end
if current ~= generation or index then
  return {'current', current, -1}
end
if broken() then
  return {'current', redis.call('HGET', barrier, 'generation'), -1}
end
count = (tonumber(count) or 0) + 1
index = parties - count
redis.call('HSET', record, 'arrived', count, id, index)
if index == 0 then
  over('tripped', id)
  return {'tripped', id, 0}
end
lives()
return {'waits', '', index}
