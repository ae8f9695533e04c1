-- Gives permits back and takes others, in one step for several callers of a
-- process. Whoever listens is told how many are left.
-- KEYS semaphore session
-- ARGV number session_ms channel give turn own_subscriptions want... (turn 1: others go first, if any listen; 2: they do anyway; 0: not)
-- acked
-- returns {number, how many of the wants were granted, from the first one on};
-- or {number, minus how many others listen}, if they go first, and nothing is granted,
-- or if nothing is wanted; or {number, -2147483648}, if there is no such semaphore
local number, session_ms, session = ARGV[1], ARGV[2], KEYS[2]
-- include session
-- include replay
-- include tell
local semaphore, channel, give, turn = KEYS[1], ARGV[3], ARGV[4], ARGV[5]
local others = 0
if turn ~= '0' then
  others = listening(channel, ARGV[6]) or 0
  if turn == '2' then
    others = math.max(others, 1)
  end
end
local granted, sum, available = 0, 0, nil
if give ~= '0' then
  redis.call('PEXPIRE', session, session_ms) -- what takes memory must not be the first to write
  available = redis.call('INCRBY', semaphore, give)
else
  available = redis.call('GET', semaphore)
  if not available then -- or what is given would have made it
    return answered(-2147483648)
  end
end
if others <= 0 then
  for i = 7, #ARGV do
    if sum + tonumber(ARGV[i]) > tonumber(available) then
      break
    end
    granted, sum = granted + 1, sum + tonumber(ARGV[i])
  end
  if sum > 0 then
    redis.call('DECRBY', semaphore, sum)
  end
end
if give ~= '0' then
  -- Redisson throws at a negative number.
  local told = tell(channel, math.max(0, available - sum), ARGV[6])
  others = ARGV[7] and others or told
end
if others > 0 then
  return answered(-others)
end
return answered(granted)
