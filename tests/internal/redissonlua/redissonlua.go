// Package redissonlua has scripts that do what those of a Redisson client do, step
// by step of its protocol, for tests that let one take part and for the benchmark.
package redissonlua

// Scripts are by what they do: "redisson.take", "redisson.unlock" and so on.
var Scripts = map[string]string{
	"redisson.take": `
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return false
end
return redis.call('PTTL', KEYS[1])`,
	"redisson.unlock": `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return false
end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], '0')
return 1`,
	"redisson.renew": `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
return 0`,

	"redisson.read": `
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'read', ARGV[2], 1)
  redis.call('SET', KEYS[2] .. ':1', 1, 'PX', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return false
end
if mode == 'read' or redis.call('HEXISTS', KEYS[1], ARGV[2] .. ':write') == 1 then
  local n = redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('SET', KEYS[2] .. ':' .. n, 1, 'PX', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[1])))
  return false
end
return redis.call('PTTL', KEYS[1])`,
	"redisson.write": `
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'write', ARGV[2] .. ':write', 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return false
end
if mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[2] .. ':write') == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2] .. ':write', 1)
  redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) + ARGV[1])
  return false
end
return redis.call('PTTL', KEYS[1])`,
	"redisson.unread": `
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call('PUBLISH', ARGV[2], '0')
  return false
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return false
end
local n = redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
if n == 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
end
redis.call('DEL', KEYS[2] .. ':' .. ARGV[1] .. ':rwlock_timeout:' .. (n + 1))
if redis.call('HLEN', KEYS[1]) > 1 then
  local longest = -3
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    for i = tonumber(redis.call('HGET', KEYS[1], field)) or 0, 1, -1 do
      longest = math.max(longest, redis.call('PTTL', KEYS[2] .. ':' .. field .. ':rwlock_timeout:' .. i))
    end
  end
  if longest > 0 then
    redis.call('PEXPIRE', KEYS[1], longest)
    return 0
  end
  if mode == 'write' then
    return 0
  end
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], '0')
return 1`,
	"redisson.unwrite": `
local mode, field = redis.call('HGET', KEYS[1], 'mode'), ARGV[1] .. ':write'
if not mode then
  redis.call('PUBLISH', ARGV[2], '1')
  return false
end
if mode ~= 'write' or redis.call('HEXISTS', KEYS[1], field) == 0 then
  return false
end
if redis.call('HINCRBY', KEYS[1], field, -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return 0
end
redis.call('HDEL', KEYS[1], field)
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[2], '1')
else
  redis.call('HSET', KEYS[1], 'mode', 'read')
end
return 1`,
	"redisson.reads on": `
local n = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if not n then
  return 0
end
for i = n, 1, -1 do
  redis.call('PEXPIRE', KEYS[2] .. ':' .. ARGV[1] .. ':rwlock_timeout:' .. i, ARGV[2])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`,

	"redisson.fair": sweep + `
if redis.call('EXISTS', KEYS[1]) == 0 and (redis.call('EXISTS', KEYS[2]) == 0 or redis.call('LINDEX', KEYS[2], 0) == ARGV[2]) then
  redis.call('LPOP', KEYS[2])
  redis.call('ZREM', KEYS[3], ARGV[2])
  for _, id in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    redis.call('ZINCRBY', KEYS[3], -tonumber(ARGV[3]), id)
  end
  redis.call('HSET', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return false
end
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return false
end
if redis.call('ZSCORE', KEYS[3], ARGV[2]) then
  return math.max(0, redis.call('PTTL', KEYS[1]))
end
local tail, ttl = redis.call('LINDEX', KEYS[2], -1), redis.call('PTTL', KEYS[1])
local score = tail and tail ~= ARGV[2] and redis.call('ZSCORE', KEYS[3], tail)
if score then
  ttl = tonumber(score) - now
end
if redis.call('ZADD', KEYS[3], ttl + ARGV[3] + now, ARGV[2]) == 1 then
  redis.call('RPUSH', KEYS[2], ARGV[2])
end
return ttl`,
	"redisson.fair.unlock": sweep + `
local function wake()
  local first = redis.call('LINDEX', KEYS[2], 0)
  if first then
    redis.call('PUBLISH', ARGV[2] .. ':' .. first, '0')
  end
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  wake()
  return 1
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return false
end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  return 0
end
redis.call('DEL', KEYS[1])
wake()
return 1`,
	"redisson.fair.leave": `
local behind = false
for _, id in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
  if behind then
    redis.call('ZINCRBY', KEYS[3], -tonumber(ARGV[2]), id)
  end
  behind = behind or id == ARGV[1]
end
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('LREM', KEYS[2], 0, ARGV[1])
return 1`,
	"redisson.group": `
local now, h = tonumber(ARGV[4]), ARGV[3]
local fresh = redis.call('EXISTS', KEYS[1]) == 0
local holder = redis.call('HGET', KEYS[1], h)
if holder and holder ~= ARGV[2] then
  local till = tonumber(redis.call('HGET', KEYS[1], h .. ':' .. holder .. ':expire_time') or 0)
  if till > now then
    return till - now
  end
end
local expiry = h .. ':' .. ARGV[2] .. ':expire_time'
redis.call('HSET', KEYS[1], h, ARGV[2])
if tonumber(redis.call('HGET', KEYS[1], expiry) or 0) < now + ARGV[1] then
  redis.call('HSET', KEYS[1], expiry, now + ARGV[1])
end
redis.call('HINCRBY', KEYS[1], h .. ':' .. ARGV[2] .. ':lock_count', 1)
local ttl = redis.call('PTTL', KEYS[1])
if fresh or ttl > 0 and ttl < tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return false`,
	"redisson.group.unlock": `
local now, h = tonumber(ARGV[4]), ARGV[3]
local expiry, count = h .. ':' .. ARGV[1] .. ':expire_time', h .. ':' .. ARGV[1] .. ':lock_count'
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('PUBLISH', ARGV[2], '0')
  return false
end
local till = tonumber(redis.call('HGET', KEYS[1], expiry) or 0)
local failed = till < now
if not failed and redis.call('HINCRBY', KEYS[1], count, -1) <= 0 then
  redis.call('HDEL', KEYS[1], h, expiry, count)
end
redis.call('PUBLISH', ARGV[2], '0')
if failed then
  return false
end
return 1`,
	"redisson.permit": `
local over = redis.call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[3], 'LIMIT', 0, 1)
if over[1] then
  redis.call('ZREM', KEYS[2], over[1])
  local v = redis.call('INCRBY', KEYS[1], 1)
  if v > 0 then
    redis.call('PUBLISH', ARGV[2], v)
  end
end
local free = redis.call('GET', KEYS[1])
if free and tonumber(free) >= 1 then
  redis.call('DECRBY', KEYS[1], 1)
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
  return 'OK'
end
return false`,
	"redisson.permit.release": `
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then
  return 0
end
redis.call('PUBLISH', ARGV[2], redis.call('INCRBY', KEYS[1], 1))
return 1`,
}

// sweep is how Redisson's scripts for a fair lock begin. The last argument is its
// client's time.
const sweep = `
local now = tonumber(ARGV[#ARGV])
while true do
  local first = redis.call('LINDEX', KEYS[2], 0)
  local score = first and redis.call('ZSCORE', KEYS[3], first)
  if not score or tonumber(score) > now then
    break
  end
  redis.call('ZREM', KEYS[3], first)
  redis.call('LPOP', KEYS[2])
end
`
