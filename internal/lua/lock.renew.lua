-- Extends many locks, each for its own owner, and corrects the hold count that
-- they show. A key of another type costs its neighbours nothing.
-- KEYS lock...
-- ARGV owner lease_ms count ... (a triple for each key; a lease of 0 only asks, a
-- count of 0 stays as it is)
-- acked
-- returns for each key 1 if it is the owner's, 0 if it is not, or the text of
-- the error that the key raised
-- A replica, which may lack what its primary has, cannot say that a hold is gone:
-- it fails where it would have to write, if only nothing.
-- include raise
local results = {}
for i, key in ipairs(KEYS) do
  local owner, lease, count = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), ARGV[3 * i]
  local shown = redis.pcall('HGET', key, owner)
  if type(shown) == 'table' then
    results[i] = shown.err
  elseif not shown then
    redis.call('HDEL', key, '')
    results[i] = 0
  else
    if lease > 0 then
      raise(key, lease)
    end
    if count ~= '0' and count ~= shown then
      redis.call('HDEL', key, '') -- what takes memory must not be the first to write
      redis.call('HSET', key, owner, count)
    end
    results[i] = 1
  end
end
return results
