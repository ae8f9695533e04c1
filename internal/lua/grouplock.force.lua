-- Releases values of a group whoever holds them, each if that is still the owner
-- that the caller saw: a late request must not free what the next one holds.
-- KEYS group
-- ARGV channel value owner ... (a pair for each value)
-- returns 1 if a value was released, 0 if none was
local group, released = KEYS[1], 0
-- include grouplock
for i = 2, #ARGV, 2 do
  local value, owner = ARGV[i], ARGV[i + 1]
  if redis.call('HGET', group, value) == owner then
    redis.call('HDEL', group, value, expiry_of(value, owner), count_of(value, owner))
    released = 1
  end
end
if released == 1 then
  redis.call('PUBLISH', ARGV[1], '0')
end
return released
