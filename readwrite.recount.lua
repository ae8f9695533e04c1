-- Sets how often an owner holds a read-write lock that it holds already: how
-- often to write, and to read. Who wrote and only reads from now on lets others
-- read too, and wakes them. A retry moves the lock to a new owner, so that the
-- first request, should it arrive late, finds nothing of its own.
-- KEYS lock
-- ARGV owner new_owner writes lease_ms reads channel
-- returns 1 if the lock is the owner's (now the new owner's), 0 if it is not
-- include gone
-- include readwrite.timeout
local owner, new, lease = ARGV[1], ARGV[2], tonumber(ARGV[4])
local writes, reads = tonumber(ARGV[3]), tonumber(ARGV[5])
local wrote = redis.call('HEXISTS', KEYS[1], owner .. ':write')
local read = tonumber(redis.call('HGET', KEYS[1], owner)) or 0
local ttl = lease -- of the new owner's reads
if wrote + read > 0 then
  for i = 1, read do
    ttl = math.max(ttl, redis.call('PTTL', timeout_key(KEYS[1], owner, i)))
    if new ~= owner or i > reads then
      redis.call('DEL', timeout_key(KEYS[1], owner, i))
    end
  end
  redis.call('HDEL', KEYS[1], owner, owner .. ':write')
  if writes > 0 then
    redis.call('HSET', KEYS[1], new .. ':write', writes)
  elseif wrote == 1 then
    redis.call('HSET', KEYS[1], 'mode', 'read')
    redis.call('PUBLISH', ARGV[6], '1')
  end
  if reads > 0 then
    redis.call('HSET', KEYS[1], new, reads)
  end
elseif redis.call('HEXISTS', KEYS[1], new .. ':write') + redis.call('HEXISTS', KEYS[1], new) == 0 then
  return gone()
end
if redis.call('PTTL', KEYS[1]) < lease then
  redis.call('PEXPIRE', KEYS[1], lease)
end
if wrote == 1 then
  ttl = math.max(ttl, redis.call('PTTL', KEYS[1])) -- it is this owner's alone
end
for i = 1, reads do
  if ttl > 0 and redis.call('PTTL', timeout_key(KEYS[1], new, i)) < ttl then
    redis.call('SET', timeout_key(KEYS[1], new, i), 1, 'PX', ttl)
  end
end
return 1
