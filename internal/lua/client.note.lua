-- Notes who a client of redlatch is, for tools that find its id.
-- KEYS client
-- ARGV identity ms
-- returns 1
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
