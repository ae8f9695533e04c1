-- Extends many read-write locks, each for its own owner: the lock, and the keys
-- that keep the owner's read holds alive. A key of another type costs its
-- neighbours nothing.
-- KEYS lock...
-- ARGV owner lease_ms ... (a pair for each key; a lease of 0 only asks)
-- returns for each key 1 if the owner holds it, 0 if it does not, or the text of
-- the error that the key raised
-- A replica, which may lack what its primary has, cannot say that a hold is gone:
-- it fails where it would have to write, if only nothing.
-- include readwrite.timeout
local results = {}
for i, lock in ipairs(KEYS) do
  local owner, lease = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local wrote = redis.pcall('HEXISTS', lock, owner .. ':write')
  if type(wrote) == 'table' then
    results[i] = wrote.err
  else
    local reads = tonumber(redis.call('HGET', lock, owner)) or 0
    results[i] = math.min(1, wrote + reads)
    if results[i] == 0 then
      redis.call('HDEL', lock, '')
    end
    if results[i] == 1 and lease > 0 then
      for n = 1, reads do
        if redis.call('PTTL', timeout_key(lock, owner, n)) < lease then
          -- What takes memory must not be the first to write.
          redis.call('DEL', timeout_key(lock, owner, n))
          redis.call('SET', timeout_key(lock, owner, n), 1, 'PX', lease)
        end
      end
      if redis.call('PTTL', lock) < lease then
        redis.call('PEXPIRE', lock, lease)
      end
    end
  end
end
return results
