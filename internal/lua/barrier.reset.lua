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
-- From a reset on the generations have its id. So if they no longer have that of the
-- one that is named, this reset was done, or is as good as done before that one.
local is = base(current)
if is == id or generation ~= '' and is ~= base(generation) then
  return 'done'
end
if current ~= generation then
  return current
end
over('reset', id)
redis.call('HSET', barrier, 'parties', parties)
return 'done'
