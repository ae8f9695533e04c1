-- Says how a limiter is configured.
-- KEYS limiter
-- returns {rate, interval in ms, type, keep-alive in ms}, with nil for what is
-- not set
return redis.call('HMGET', KEYS[1], 'rate', 'interval', 'type', 'keepAliveTime')
