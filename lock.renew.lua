-- Extends many locks, each for its own owner. A key of another type costs its
-- neighbours nothing.
-- KEYS lock...
-- ARGV owner lease_ms ... (a pair for each key; a lease of 0 only asks)
-- returns for each key 1 if it is the owner's, 0 if it is not, or the text of
-- the error that the key raised
-- A replica, which may lack what its primary has, cannot say that a hold is gone:
-- it fails where it would have to write, if only nothing.
local results = {}
for i, key in ipairs(KEYS) do
  local lease = tonumber(ARGV[2 * i])
  local held = redis.pcall('HEXISTS', key, ARGV[2 * i - 1])
  if type(held) == 'table' then
    held = held.err
  elseif held == 0 then
    redis.call('HDEL', key, '')
  elseif redis.call('PTTL', key) < lease then
    redis.call('PEXPIRE', key, lease)
  end
  results[i] = held
end
return results
