-- Gives permits back, those of them that are there. One whose time is over is
-- free again too, but does not count.
-- KEYS free timeouts
-- ARGV channel own_subscriptions id...
-- acked
-- returns {how many were live, how many others listen}
-- include tell
local free, timeouts = KEYS[1], KEYS[2]
-- include expirable
local back, live, others = {}, 0, 0
for i = 3, #ARGV do
  local score = there and redis.call('ZSCORE', timeouts, ARGV[i])
  if score then
    back[#back + 1] = ARGV[i]
    if tonumber(score) > now then
      live = live + 1
    end
  end
end
if back[1] then
  redis.call('ZREM', timeouts, '') -- what takes memory must not be the first to write
  redis.call('INCRBY', free, 0) -- refused here if at all: what is removed must not be lost
  local left = redis.call('INCRBY', free, remove(back))
  if left > 0 then
    others = tell(ARGV[1], left, ARGV[2])
  end
end
return {live, others}
