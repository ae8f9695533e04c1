-- Reads a barrier, and who has arrived in a generation of it, if that is the one
-- which gathers. It changes nothing.
-- KEYS barrier record alive
-- ARGV generation
-- returns {TTL in ms, the generation that gathers, parties, n, n fields and values
-- of the record in turn, each client with until when it is believed to live}, of
-- another generation only the first three; nil if there is no barrier
local set = redis.call('HMGET', KEYS[1], 'generation', 'parties')
if not set[1] or not set[2] then
  return false
end
local info = {redis.call('PTTL', KEYS[1]), set[1], set[2]}
if set[1] ~= ARGV[1] then
  return info
end
if redis.call('HLEN', KEYS[2]) > 100000 then -- to read them would stop the server
  return redis.error_reply('WRONGTYPE more fields than a generation has: ' .. string.sub(KEYS[2], 1, 200))
end
local record = redis.call('HGETALL', KEYS[2])
info[4] = #record
for _, text in ipairs(record) do
  info[#info + 1] = text
end
for _, text in ipairs(redis.call('ZRANGE', KEYS[3], 0, 99999, 'WITHSCORES')) do
  info[#info + 1] = text
end
return info
