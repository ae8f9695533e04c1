-- Tells all clients something, or all who listen to their answers.
-- ARGV channel message
-- returns how many subscribers of this server got it
return redis.call('PUBLISH', ARGV[1], ARGV[2])
