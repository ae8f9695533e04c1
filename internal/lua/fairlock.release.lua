-- Releases a fair lock for good, however often it was entered, if one of these owners
-- has it, and takes the others out of the queue. If the lock is free then, it goes to
-- whose turn it is.
-- KEYS lock queue timeouts alive
-- ARGV channel allowance_ms owner...
-- returns which of these owners had the lock, counted from 1, or 0 if none had it
local queue, timeouts, alive, allowance = KEYS[2], KEYS[3], KEYS[4], tonumber(ARGV[2])
-- include fairlock
local some = redis.call('HRANDFIELD', KEYS[1], '2') -- of a fair lock there is one
local holder = #some == 1 and some[1]
local held, others, nobody = 0, {}, false
for i = 3, #ARGV do
  if held == 0 and ARGV[i] == holder then
    held = i - 2
  else
    others[#others + 1] = ARGV[i]
  end
end
if #others > 0 then
  nobody = leave(others)
end
if held > 0 or #some == 0 then
  give(ARGV[1], some, nobody)
elseif not nobody then
  front()
end
return held
