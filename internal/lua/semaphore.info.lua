-- Reads a number, and the permits that are given of it: a semaphore of either
-- type, or a latch. It changes nothing.
-- KEYS number given
-- ARGV semaphore_channel latch_channel most (permits)
-- returns {TTL in ms, the number, how many listen for permits, how many for the
-- latch, n, n ids of permits whose time is over, each other id and the ms that
-- are left of it, -1 if it never ends}; a TTL of -2 means that there is no such
-- key. Of a text that is longer than any number it returns the beginning.
local info = {
  redis.call('PTTL', KEYS[1]),
  redis.call('GETRANGE', KEYS[1], 0, 20),
  redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2],
  redis.call('PUBSUB', 'NUMSUB', ARGV[2])[2],
  0,
}
local most = tonumber(ARGV[3])
if not tonumber(info[2]) or redis.call('TYPE', KEYS[2]).ok ~= 'zset' then
  return info
end
if redis.call('ZCARD', KEYS[2]) > most then
  return redis.error_reply('WRONGTYPE more members than a semaphore has permits: ' .. string.sub(KEYS[1], 1, 200))
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local over = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
info[5] = #over
for _, id in ipairs(over) do
  info[#info + 1] = id
end
for i, text in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES')) do
  if i % 2 == 1 then
    info[#info + 1] = text
  elseif tonumber(text) >= 922337203685477 then -- Redisson's mark of a permit that never ends
    info[#info + 1] = -1
  else
    info[#info + 1] = math.ceil(text - now)
  end
end
return info
