-- Asks another client of redlatch to let go of a lock, and leaves word of it where
-- only those may write who may write the lock.
-- KEYS asked
-- ARGV channel message owner ms
-- returns how many subscribers of this server got it
redis.call('PEXPIRE', KEYS[1], ARGV[4]) -- what takes memory must not be the first to write
redis.call('HSET', KEYS[1], ARGV[3], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return redis.call('PUBLISH', ARGV[1], ARGV[2])
