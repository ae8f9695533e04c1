-- Shows a token and reads what it guards.
-- KEYS key fence
-- ARGV token remember_ms (0 ms: for ever)
-- returns {value}, {nil} if there is none, or the highest token if that is above
-- this one
local fence, token, remember_ms = KEYS[2], ARGV[1], ARGV[2]
-- include show
local value = redis.call('GET', KEYS[1])
return show() or {value}
