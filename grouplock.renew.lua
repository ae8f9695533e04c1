-- Extends what many owners have of groups. A key of another type costs its
-- neighbours nothing.
-- KEYS group...
-- ARGV owner lease_ms values ... (n, n fields, skew_ms; all that for each key; a
-- lease of 0 only asks)
-- returns for each key 1 if all the values are the owner's, 0 if they are not, or
-- the text of the error that the key raised
-- A replica, which may lack what its primary has, cannot say that a hold is gone:
-- it fails where it would have to write, if only nothing.
-- include grouplock
local results, at, now = {}, 1, server_ms()
for i, group in ipairs(KEYS) do
  local owner, lease = ARGV[at], tonumber(ARGV[at + 1])
  local values, skew = group_values(at + 2)
  at = at + 4 + #values
  local result = 1
  for _, value in ipairs(values) do
    local holder = redis.pcall('HGET', group, value)
    if type(holder) == 'table' then
      result = holder.err
      break
    elseif holder ~= owner then
      redis.call('HDEL', group, '')
      result = 0
    end
  end
  if result == 1 and lease > 0 then
    for _, value in ipairs(values) do
      local expiry = expiry_of(value, owner)
      if tonumber(redis.call('HGET', group, expiry) or 0) < now + lease + skew then
        redis.call('HDEL', group, expiry) -- what takes memory must not be the first to write
        redis.call('HSET', group, expiry, now + lease + skew)
      end
    end
    if redis.call('PTTL', group) < lease then
      redis.call('PEXPIRE', group, lease)
    end
  end
  results[i] = result
end
return results
