-- Reads all that is stored of a lock, whatever its type.
-- KEYS lock queue timeouts token
-- ARGV most (fields, and waiters that are read)
-- returns {TTL in ms, the server's time in ms, token, n, n fields and values of
-- the lock in turn, m, m waiters, each waiter with a timeout and that in turn};
-- a TTL of -2 means that there is no such key, -1 that it never expires; the
-- token is '' if there is none
local most = tonumber(ARGV[1])
if redis.call('HLEN', KEYS[1]) > most then
  return redis.error_reply('WRONGTYPE more fields than a lock has: ' .. string.sub(KEYS[1], 1, 200))
end
local now = redis.call('TIME')
local info = {
  redis.call('PTTL', KEYS[1]),
  now[1] * 1000 + math.floor(now[2] / 1000),
  redis.call('GET', KEYS[4]) or '',
}
local function append(list)
  for _, text in ipairs(list) do
    info[#info + 1] = text
  end
end
local fields = redis.call('HGETALL', KEYS[1])
info[#info + 1] = #fields
append(fields)
local queue = redis.call('LRANGE', KEYS[2], 0, most - 1)
info[#info + 1] = #queue
append(queue)
append(redis.call('ZRANGE', KEYS[3], 0, most - 1, 'WITHSCORES'))
return info
