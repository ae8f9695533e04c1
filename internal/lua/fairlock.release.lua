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
local held, leaves, scored = 0, {}, 0 -- leaves has 1 for an owner with a score, 0 for one without
for i = 3, #ARGV do
  if ARGV[i] == holder then
    redis.call('DEL', KEYS[1])
    held, holder = i - 2, nil
  elseif not leaves[ARGV[i]] then
    redis.call('ZREM', alive, nonce(ARGV[i])) -- what takes memory must not be the first to write
    if scored == 0 and redis.call('ZSCORE', timeouts, ARGV[i]) then
      tighten()
    end
    leaves[ARGV[i]] = redis.call('ZREM', timeouts, ARGV[i])
    scored = scored + leaves[ARGV[i]]
  end
end
if next(leaves) then
  local at, gone = 0, 0
  repeat
    local ids = redis.call('LRANGE', queue, at, at + most - 1)
    for i, id in ipairs(ids) do
      if leaves[id] then
        redis.call('LSET', queue, at + i - 1, '')
        gone, leaves[id] = gone + leaves[id], 0
      elseif gone > 0 and at == 0 then
        redis.call('ZADD', timeouts, 'XX', 'INCR', -allowance * gone, id)
      end
    end
    at = at + most
  until gone == scored or #ids < most
  redis.call('LREM', queue, 0, '')
end
if held > 0 or #some == 0 then
  give(ARGV[1])
else
  front()
end
return held
