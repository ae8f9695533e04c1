-- Shows a token and deletes what it guards. A repetition and a call that arrives
-- late change nothing, and are answered as if they had come in time.
-- KEYS key fence
-- ARGV token remember_ms writer call (0 ms: for ever)
-- returns 1, or the highest token if that is above this one
local fence, token, remember_ms = KEYS[2], ARGV[1], ARGV[2]
-- include change
local refusal = refused('deleted')
if refusal then
  return refusal
end
if not late(ARGV[3], ARGV[4]) then
  redis.call('DEL', KEYS[1])
end
return 1
