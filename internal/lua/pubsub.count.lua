-- Counts the subscribers of a channel at the node that has a key.
-- KEYS key (says which node; as a channel it has no subscribers)
-- ARGV channel
-- returns how many they are
return redis.call('PUBSUB', 'NUMSUB', ARGV[1], KEYS[1])[2]
