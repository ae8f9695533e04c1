-- Reads how a limiter is configured, and how many permits could be had now. It
-- changes nothing.
-- KEYS limiter value permits own_value own_permits recount own_recount
-- ARGV (none)
-- returns {TTL in ms, rate, interval in ms, type, keep-alive in ms or nil, how
-- many permits}, or nil if the limiter has no rate
-- include ratelimiter
if not set then
  return false
end
return {redis.call('PTTL', limiter), config[1], config[2], config[3], config[4], math.max(0, (available(false, rate)))}
