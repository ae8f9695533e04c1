-- Asks of what types keys are.
-- KEYS key...
-- ARGV (none)
-- returns the type of each, "none" if it is not there
local types = {}
for i, key in ipairs(KEYS) do
  types[i] = redis.call('TYPE', key).ok
end
return types
