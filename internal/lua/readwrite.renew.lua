-- Extends many read-write locks, each for its own owner: the lock, and the key
-- that keeps the owner's read hold alive. It corrects how many write holds are
-- shown, but makes none, and ends none. A key of another type costs its neighbours
-- nothing.
-- KEYS lock...
-- ARGV owner lease_ms writes ... (a triple for each key; a lease of 0 only asks,
-- writes of 0 stay as they are)
-- returns for each key 1 if the owner holds it, 0 if it does not, or the text of
-- the error that the key raised
-- A replica, which may lack what its primary has, cannot say that a hold is gone:
-- it fails where it would have to write, if only nothing.
-- include readwrite.timeout
local results = {}
for i, lock in ipairs(KEYS) do
  local owner, keep_ms, writes = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), ARGV[3 * i]
  local wrote = redis.pcall('HGET', lock, owner .. ':write')
  if type(wrote) == 'table' then
    results[i] = wrote.err
  else
    local reads = redis.call('HEXISTS', lock, owner)
    results[i] = wrote and 1 or reads
    if results[i] == 0 then
      redis.call('HDEL', lock, '')
    end
    if reads == 1 then
      -- include readwrite.keep
    end
    if results[i] == 1 and keep_ms > 0 and redis.call('PTTL', lock) < keep_ms then
      redis.call('PEXPIRE', lock, keep_ms)
    end
    if wrote and writes ~= '0' and writes ~= wrote then
      redis.call('HDEL', lock, '') -- what takes memory must not be the first to write
      redis.call('HSET', lock, owner .. ':write', writes)
    end
  end
end
return results
