-- Tells another client of redlatch that an owner has let go, which nobody need ask for
-- any more.
-- KEYS asked
-- ARGV channel message owner
-- returns how many subscribers of this server got it
redis.call('HDEL', KEYS[1], ARGV[3])
return redis.call('PUBLISH', ARGV[1], ARGV[2])
