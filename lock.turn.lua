-- Gives other processes their turn, if any of them waits. Otherwise the lock
-- moves to a new owner field and stays.
-- KEYS lock
-- ARGV owner new_owner lease_ms channel own_subscriptions yield_anyway
-- returns -1 if the lock is neither owner's, 0 if it is the new owner's now,
-- else how many other subscribers it was released to (at least 1)
local owner, new, lease = ARGV[1], ARGV[2], ARGV[3]
if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  if redis.call('HEXISTS', KEYS[1], new) == 0 then
    return -1
  end
  if redis.call('PTTL', KEYS[1]) < tonumber(lease) then
    redis.call('PEXPIRE', KEYS[1], lease)
  end
  return 0
end
local others = tonumber(redis.call('PUBSUB', 'NUMSUB', ARGV[4])[2]) - tonumber(ARGV[5])
if others > 0 or ARGV[6] == '1' then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[4], '0')
  return math.max(others, 1)
end
redis.call('HSET', KEYS[1], new, 1)
redis.call('HDEL', KEYS[1], owner)
redis.call('PEXPIRE', KEYS[1], lease)
return 0
