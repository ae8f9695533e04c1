-- Releases values of a group whoever holds them, each if that is still the owner
-- that the caller saw: a late request must not free what the next one holds.
-- KEYS group
-- ARGV channel value owner ... (a pair for each value)
-- returns 1 if a value was released, 0 if none was
local fields = {}
-- include grouplock
for i = 2, #ARGV, 2 do
  local value, owner = ARGV[i], ARGV[i + 1]
  if redis.call('HGET', KEYS[1], value) == owner then
    fields[#fields + 1] = value
    fields[#fields + 1] = expiry_of(value, owner)
    fields[#fields + 1] = count_of(value, owner)
  end
end
if not fields[1] then
  return 0
end
remove(fields)
redis.call('PUBLISH', ARGV[1], '0')
return 1
