-- Takes values of a group, all of them or none. To take what is this owner's
-- already is the replay of a take whose reply was lost: it changes nothing, but
-- may raise how long it lasts. Another type's lock under the same name is in the
-- way as a whole: one field, the owner's, or more with a mode among them.
-- KEYS group token... (at most one, for an acquisition that is to have a token)
-- ARGV lease_ms owner values... (n, n fields, skew_ms; then token_ttl_ms if there
-- is a token key, 0: that never expires)
-- acked
-- returns the token, or 1, if all are the owner's, else {ms until the last of
-- them is free, or the TTL of another type's lock, its owner}
local group, lease, owner = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local token_key, token_ttl_ms = KEYS[2], ARGV[#ARGV]
-- include token
-- include grouplock
-- include readwrite.holder
if redis.call('HLEN', group) == 1 or redis.call('HEXISTS', group, 'mode') == 1 then
  return held_by(owner)
end
local values, skew = group_values(3)
local now, replay, others = server_ms(), true, {}
local longest, whose = 0, nil
for _, value in ipairs(values) do
  local holder = redis.call('HGET', group, value)
  replay = replay and holder == owner
  if holder and holder ~= owner then
    others[value] = holder
    local left = (finite(redis.call('HGET', group, expiry_of(value, holder))) or 0) - now
    if string.sub(holder, 15, 15) ~= '8' then
      left = left + skew -- Redisson's, by a clock that may be behind
    end
    if left > longest then
      longest, whose = left, holder
    end
  end
end
if whose then
  return {longest, whose}
end
local token = fencing_token(replay)
for _, value in ipairs(values) do
  local was, expiry, count = others[value], expiry_of(value, owner), count_of(value, owner)
  local till, holds = unpack(redis.call('HMGET', group, expiry, count))
  if was then
    redis.call('HDEL', group, expiry_of(value, was), count_of(value, was))
  end
  if (finite(till) or 0) < now + lease + skew then
    till = now + lease + skew
  end
  redis.call('HSET', group, value, owner, count, holds or '1', expiry, till)
end
-- include raise
raise(group, lease)
return token
