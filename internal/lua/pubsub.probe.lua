-- Asks whether the server knows sharded Pub/Sub.
-- KEYS channel (any)
-- returns 1 if it does, 0 if not
local answer = redis.pcall('PUBSUB', 'SHARDNUMSUB', KEYS[1])
return answer.err and 0 or 1
