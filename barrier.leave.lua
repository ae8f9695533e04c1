-- Leaves a generation of a barrier, which breaks it, unless it has ended. One who
-- has not arrived yet never will.
-- KEYS barrier record alive
-- ARGV generation id channel
-- returns 1 if the generation was broken by that, else 0
local generation, id, channel = ARGV[1], ARGV[2], ARGV[3]
-- include barrier
local index = redis.call('HGET', record, id)
if redis.call('HGET', barrier, 'generation') ~= generation or index == 'gone' then
  return 0
end
if index then
  over('left', id)
  return 1
end
redis.call('HSET', record, id, 'gone')
redis.call('PEXPIRE', record, kept)
return 0
