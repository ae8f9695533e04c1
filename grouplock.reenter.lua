-- Sets the hold count of values that are the owner's, after a re-entry or the
-- release of an inner hold. A retry moves them to a new owner, so that the first
-- request, should it arrive late, finds nothing of its own.
-- KEYS group
-- ARGV owner new_owner count lease_ms values... (n, n fields, skew_ms)
-- returns 1 if all are the owner's (now the new owner's), 0 if they are not
-- include gone
local group, owner, new, lease = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[4])
-- include grouplock
local values, skew = group_values(5)
for _, value in ipairs(values) do
  local holder = redis.call('HGET', group, value)
  if holder ~= owner and holder ~= new then
    return gone()
  end
end
local till = lease > 0 and server_ms() + lease + skew or 0
for _, value in ipairs(values) do
  local last = till
  for _, field in ipairs({expiry_of(value, owner), expiry_of(value, new)}) do
    last = math.max(last, tonumber(redis.call('HGET', group, field) or 0))
  end
  if redis.call('HGET', group, value) == owner then
    -- First: what takes memory must not be the first to write.
    redis.call('HDEL', group, expiry_of(value, owner), count_of(value, owner))
    redis.call('HSET', group, count_of(value, new), ARGV[3])
    if new ~= owner then
      redis.call('HSET', group, value, new)
    end
  end
  redis.call('HSET', group, expiry_of(value, new), last)
end
if redis.call('PTTL', group) < lease then
  redis.call('PEXPIRE', group, lease)
end
return 1
