-- Shows a token.
-- KEYS fence
-- ARGV token remember_ms (0 ms: for ever)
-- returns 1, or the highest token if that is above this one
local fence, token, remember_ms = KEYS[1], ARGV[1], ARGV[2]
-- include show
return show() or 1
