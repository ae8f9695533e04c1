-- Asks whether others wait for a lock that its owner reads.
-- KEYS lock
-- ARGV owner channel own_subscriptions
-- returns how many others listen for its release, -1 if the owner does not read
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return -1
end
return tonumber(redis.call('PUBSUB', 'NUMSUB', ARGV[2])[2]) - tonumber(ARGV[3])
