-- Gives permits back by their ids, for several callers: of each all of them, or none
-- if one is not live.
-- KEYS free timeouts session
-- ARGV number session_ms channel back... (for each caller: how many, and so many ids)
-- acked
-- returns {number, the sum of 2^i of the callers whose permits were given back} of
-- the session's last request; i counts from 0
local free, timeouts, session = KEYS[1], KEYS[2], KEYS[3]
local number, session_ms = ARGV[1], ARGV[2]
-- include session
-- include expirable
-- include replay
local back, goes, done, bit, at = {}, {}, 0, 1, 4
while ARGV[at] do
  local last, live = at + ARGV[at], there
  for i = at + 1, last do
    local score = redis.call('ZSCORE', timeouts, ARGV[i])
    if not score or tonumber(score) <= now or goes[ARGV[i]] then
      live = false
    end
  end
  if live then
    for i = at + 1, last do
      back[#back + 1] = ARGV[i]
      goes[ARGV[i]] = true
    end
    done = done + bit
  end
  bit, at = 2 * bit, last + 1
end
sweep(ARGV[3], ended())
if back[1] then
  redis.call('ZREM', timeouts, '') -- what takes memory must not be the first to write
  redis.call('INCRBY', free, 0) -- refused here if at all: what is removed must not be lost
  local n = remove(back)
  redis.call('INCRBY', free, n)
  redis.call('PUBLISH', ARGV[3], n)
end
return answered(done)
