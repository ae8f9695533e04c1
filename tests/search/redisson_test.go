package search

// redisson are the scripts of a Redisson client, of its protocol's steps.
var redisson = map[string]string{
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
}
