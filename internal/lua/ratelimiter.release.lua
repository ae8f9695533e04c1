-- Gives permits back. They are taken off the oldest records: whose they were is
-- not known, and so no window ever holds more than the rate.
-- KEYS limiter value permits own_value own_permits recount own_recount session
-- ARGV number session_ms n
-- returns {number, 1}, or {number, 0} if the limiter has no rate
local session, number, session_ms = KEYS[8], ARGV[1], ARGV[2]
-- include session
-- include ratelimiter
-- include replay
if not set then
  return answered(0)
end
local free = sweep(0)
local back = ARGV[3] - shed(tonumber(ARGV[3]))
store(math.min(rate, free + back), true)
return answered(1)
