-- Releases a fair lock for good, however often it was entered, or takes its
-- owner out of the queue. If the lock is free then, it goes to whose turn it is.
-- KEYS lock queue timeouts alive
-- ARGV owner channel
-- returns 1 if the lock was the owner's, 0 if it was not
local queue, timeouts, alive = KEYS[2], KEYS[3], KEYS[4]
local owner = ARGV[1]
-- include fairlock
local held = redis.call('HLEN', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], owner) == 1
if held then
  redis.call('DEL', KEYS[1])
else
  if redis.call('ZREM', timeouts, owner) == 1 then
    local behind = false
    for _, id in ipairs(redis.call('LRANGE', queue, 0, most - 1)) do
      if behind then
        redis.call('ZADD', timeouts, 'XX', 'INCR', -allowance, id)
      end
      behind = behind or id == owner
    end
  end
  redis.call('LREM', queue, 0, owner)
  redis.call('ZREM', alive, waiter(owner), nonce(owner))
end
if held or redis.call('EXISTS', KEYS[1]) == 0 then
  give(ARGV[2])
else
  front()
end
return held and 1 or 0
