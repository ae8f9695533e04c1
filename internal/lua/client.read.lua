-- Reads who a client is. Whoever may use locks may write there, so no more is read than
-- a client writes.
-- KEYS client
-- ARGV bytes
-- returns the first bytes of what is noted, empty if nothing is
return redis.call('GETRANGE', KEYS[1], 0, ARGV[1] - 1)
