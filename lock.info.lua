-- Reads who holds a lock.
-- KEYS lock
-- ARGV (none)
-- returns {TTL in ms, field, count, field, count, ...}; a TTL of -2 means that
-- there is no such key, -1 that it never expires
local info = {redis.call('PTTL', KEYS[1])}
for i, text in ipairs(redis.call('HGETALL', KEYS[1])) do
  info[i + 1] = text
end
return info
