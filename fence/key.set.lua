-- Shows a token and sets what it guards. A repetition and a call that arrives
-- late change nothing, and are answered as if they had come in time.
-- KEYS key fence
-- ARGV token remember_ms writer call value ttl_ms (0 ms: for ever)
-- returns 1, or the highest token if that is above this one
local fence, token, remember_ms = KEYS[2], ARGV[1], ARGV[2]
-- include change
local refusal = refused('overwritten')
if refusal then
  return refusal
end
if late(ARGV[3], ARGV[4]) then
  return 1
end
if ARGV[6] == '0' then
  redis.call('SET', KEYS[1], ARGV[5])
else
  redis.call('SET', KEYS[1], ARGV[5], 'PX', ARGV[6])
end
return 1
