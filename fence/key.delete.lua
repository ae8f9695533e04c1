-- Shows a token and deletes what it guards. A repetition and a call that arrives
-- late change nothing, and are answered as if they had come in time.
-- KEYS key fence
-- ARGV token remember_ms writer call (0 ms: for ever)
-- returns 1, or the highest token if that is above this one
local fence, token, remember_ms = KEYS[2], ARGV[1], ARGV[2]
-- include show
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'string' then
  return redis.error_reply('WRONGTYPE a ' .. kind .. ' is not deleted: a lock may be one')
end
local highest = show()
if highest then
  return highest
end
if not late(ARGV[3], ARGV[4]) then
  redis.call('DEL', KEYS[1])
end
return 1
