-- Asks all clients something.
-- ARGV channel message spread unknown_spread
-- (the message lacks its end, which is over how many ms the answers come: over spread,
-- unless that is negative. Then it is 0.1 for each who listens here, and unknown_spread if
-- the user may not ask how many those are)
-- returns how many listen here, -1 if the user may not ask, and the spread
-- include tell
local n = listening(ARGV[1], 0) or -1
local spread = tonumber(ARGV[3])
if spread < 0 then
  spread = n < 0 and tonumber(ARGV[4]) or math.ceil(n / 10)
end
redis.call('PUBLISH', ARGV[1], ARGV[2] .. string.format('%d}', spread))
return {n, spread}
