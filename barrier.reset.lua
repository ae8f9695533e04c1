-- Breaks the generation of a barrier that gathers, if it is the one that is
-- named, and says how many make one from now on.
-- KEYS barrier record alive ended
-- ARGV generation id channel parties
-- returns 'done', or the generation that gathers
local generation, id, channel, parties = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- include barrier
local current = redis.call('HGET', barrier, 'generation')
if not current then
  redis.call('HSET', barrier, 'generation', id .. ':1', 'parties', parties)
  redis.call('PEXPIRE', barrier, kept)
  return 'done'
end
local _, who = ending()
if who == id or string.sub(current, 1, #id + 1) == id .. ':' then
  return 'done'
end
if current ~= generation then
  return current
end
over('reset', id)
redis.call('HSET', barrier, 'parties', parties)
return 'done'
