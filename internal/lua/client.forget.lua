-- Takes away the note of who a client is.
-- KEYS client
-- returns 1 if there was one, else 0
return redis.call('DEL', KEYS[1])
