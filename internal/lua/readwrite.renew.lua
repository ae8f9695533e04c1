-- Extends many read-write locks, each for its own owner: the lock, and the key
-- that keeps the owner's read hold alive. It corrects how many write holds are
-- shown, but makes none, and ends none. A key of another type costs its neighbours
-- nothing.
-- KEYS lock... (behind that of an owner that reads, the key that keeps its read hold alive)
-- ARGV owner lease_ms writes ... (a triple for each lock; a lease of 0 only asks,
-- writes of 0 stay as they are)
-- acked
-- returns for each lock 1 if the owner holds it, 0 if it does not, or the text of
-- the error that the key raised
-- A replica, which may lack what its primary has, cannot say that a hold is gone:
-- it fails where it would have to write, if only nothing.
-- include readwrite.left
-- include raise
local results, at = {}, 1
for i = 1, #ARGV / 3 do
  local lock, owner, keep_ms, writes = KEYS[at], ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), ARGV[3 * i]
  local proves = KEYS[at + 1] == timeout_key(lock, owner, 1)
  at = proves and at + 2 or at + 1
  local wrote = redis.pcall('HGET', lock, owner .. ':write')
  if type(wrote) == 'table' then
    results[i] = wrote.err
  else
    local reads = redis.call('HEXISTS', lock, owner)
    results[i] = (wrote or reads == 1) and 1 or 0
    if results[i] == 0 then
      redis.call('HDEL', lock, '')
    elseif not wrote and not proves then
      results[i] = 'TRYAGAIN the owner only reads by now' -- to raise the lock's TTL alone would not keep it
    elseif keep_ms > 0 then
      if reads == 1 and proves then
        local proof_ms = left_of(lock, owner, 1)
        -- include readwrite.keep
      end
      raise(lock, keep_ms)
    end
    if wrote and writes ~= '0' and writes ~= wrote then
      redis.call('HDEL', lock, '') -- what takes memory must not be the first to write
      redis.call('HSET', lock, owner .. ':write', writes)
    end
  end
end
return results
