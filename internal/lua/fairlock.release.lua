-- Releases a fair lock for good, however often it was entered, if one of these owners
-- has it, and takes the others out of the queue. If the lock is free then, it goes to
-- whose turn it is.
-- KEYS lock queue timeouts alive
-- ARGV channel allowance_ms owner...
-- returns which of these owners had the lock, counted from 1, or 0 if none had it
local queue, timeouts, alive, allowance = KEYS[2], KEYS[3], KEYS[4], tonumber(ARGV[2])
-- include fairlock
local some = redis.call('HRANDFIELD', KEYS[1], 2) -- of a fair lock there is one
local holder = #some == 1 and some[1]
local held, others = 0, {}
for i = 3, #ARGV do
  if ARGV[i] == holder then
    redis.call('DEL', KEYS[1])
    held, holder = i - 2, nil
  else
    others[#others + 1] = ARGV[i]
  end
end
if #others > 0 then
  leave(others)
end
if held > 0 or #some == 0 then
  give(ARGV[1])
else
  front()
end
return held
