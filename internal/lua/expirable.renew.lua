-- Raises the times of many permits. A key of another type costs its neighbours
-- nothing.
-- KEYS timeouts... (of each permit's semaphore)
-- ARGV id lease_ms ... (a pair for each key; a lease of 0 only asks)
-- acked
-- returns for each key 1 if the permit is live, 0 if it is not, or the text of the
-- error that the key raised
-- A replica, which may lack what its primary has, cannot say that a hold is gone:
-- it fails where it would have to write, if only nothing.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local results = {}
for i, timeouts in ipairs(KEYS) do
  local id, until_ms = ARGV[2 * i - 1], now + ARGV[2 * i]
  local score = redis.pcall('ZSCORE', timeouts, id)
  if type(score) == 'table' then
    results[i] = score.err
  elseif score and tonumber(score) > now then
    if tonumber(score) < until_ms then
      redis.call('ZREM', timeouts, '') -- no id: what takes memory must not be the first to write
      redis.call('ZADD', timeouts, until_ms, id)
    elseif ARGV[2 * i] ~= '0' then
      -- For WAIT it writes something: see raise. The key lasts as it did, or for its last millisecond.
      local ttl = redis.call('PTTL', timeouts)
      redis.call('PEXPIRE', timeouts, ttl < 0 and 1000000000 or math.max(1, ttl))
      if ttl < 0 then
        redis.call('PERSIST', timeouts)
      end
    end
    results[i] = 1
  else
    redis.call('ZREM', timeouts, '')
    results[i] = 0
  end
end
return results
