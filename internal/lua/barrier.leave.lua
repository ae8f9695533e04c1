-- Takes callers out of a generation of a barrier, which breaks it, unless it has
-- ended. Those who have not arrived yet never will.
-- KEYS barrier record alive ended
-- ARGV generation channel id...
-- returns 1 if the generation was broken by that, else 0
local generation, channel = ARGV[1], ARGV[2]
-- include barrier
if redis.call('HGET', barrier, 'generation') ~= generation then
  return 0
end
for i = 3, #ARGV do
  local index = redis.call('HGET', record, ARGV[i])
  if index and index ~= 'gone' then
    over('left', ARGV[i])
    return 1
  end
end
for i = 3, #ARGV do
  redis.call('HSET', record, ARGV[i], 'gone')
end
redis.call('PEXPIRE', record, kept)
return 0
