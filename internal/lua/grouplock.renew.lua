-- Extends what many owners have of groups, and corrects the hold count that is
-- shown there. A key of another type costs its neighbours nothing.
-- KEYS group...
-- ARGV owner lease_ms count values ... (n, n fields, skew_ms; all that for each
-- key; a lease of 0 only asks, a count of 0 stays as it is)
-- acked
-- returns for each key 1 if all the values are the owner's, 0 if they are not, or
-- the text of the error that the key raised
-- A replica, which may lack what its primary has, cannot say that a hold is gone:
-- it fails where it would have to write, if only nothing.
-- include grouplock
-- include raise
local results, at, now = {}, 1, server_ms()
for i, group in ipairs(KEYS) do
  local owner, lease, count = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  local values, skew = group_values(at + 3)
  at = at + 5 + #values
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
  if result == 1 then
    for _, value in ipairs(values) do
      -- What takes memory must not be the first to write.
      local expiry, till = expiry_of(value, owner), now + lease + skew
      if lease > 0 and (finite(redis.call('HGET', group, expiry)) or 0) < till then
        redis.call('HDEL', group, expiry)
        redis.call('HSET', group, expiry, till)
      end
      if count ~= '0' and redis.call('HGET', group, count_of(value, owner)) ~= count then
        redis.call('HDEL', group, '')
        redis.call('HSET', group, count_of(value, owner), count)
      end
    end
    if lease > 0 then
      raise(group, lease)
    end
  end
  results[i] = result
end
return results
