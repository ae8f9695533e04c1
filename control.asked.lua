-- Takes the word that somebody who may write a lock has left: its owner is to let go.
-- KEYS asked
-- ARGV owner
-- returns 1 if there is such a word, else 0
return redis.call('HDEL', KEYS[1], ARGV[1])
