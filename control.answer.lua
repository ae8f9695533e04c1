-- Tells another client of redlatch that it has let go.
-- ARGV channel message
-- returns how many subscribers of this server got it
return redis.call('PUBLISH', ARGV[1], ARGV[2])
