-- Looks whether somebody who may write a lock has left word: its owner is to let go.
-- KEYS asked
-- ARGV owner
-- returns 1 if there is such a word, else 0
return redis.call('HEXISTS', KEYS[1], ARGV[1])
