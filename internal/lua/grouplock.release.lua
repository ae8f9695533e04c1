-- Releases values of a group for good, however often they were entered, and
-- wakes one waiter of every process, whatever value it waits for.
-- KEYS group
-- ARGV owner channel own_subscriptions values... (n, n fields; what follows is not of interest)
-- returns 1 and how many others listen if all were the owner's, 0 if some were not;
-- the others are released
local group, owner, channel = KEYS[1], ARGV[1], ARGV[2]
-- include grouplock
-- include tell
local values = group_values(4)
local fields, released, others = {}, 0, 0
for _, value in ipairs(values) do
  if redis.call('HGET', group, value) == owner then
    fields[#fields + 1] = value
    released = released + 1
  end
  fields[#fields + 1] = expiry_of(value, owner)
  fields[#fields + 1] = count_of(value, owner)
end
remove(fields)
if released > 0 then
  others = tell(channel, '0', ARGV[3])
end
return released == #values and 1 + others or 0
