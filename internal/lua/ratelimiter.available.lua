-- Says how many permits could be had now. It changes nothing.
-- KEYS limiter value permits own_value own_permits recount own_recount
-- returns the number, or nil if the limiter has no rate
-- include ratelimiter
if not set then
  return false
end
return math.max(0, (available(false, rate)))
