-- Says for how long permits are given. It changes nothing.
-- KEYS timeouts
-- ARGV id...
-- returns for each the ms that are left, -1 if it never ends, -2 if it is not live
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local results = {}
for i, id in ipairs(ARGV) do
  local score = tonumber(redis.call('ZSCORE', KEYS[1], id) or '')
  if not score or score <= now then
    results[i] = -2
  elseif score >= 922337203685477 then -- Redisson's mark
    results[i] = -1
  else
    results[i] = score - now
  end
end
return results
