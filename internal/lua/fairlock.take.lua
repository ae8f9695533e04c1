-- Takes a fair lock that is free if it is the caller's turn, or else puts the
-- caller at the end of the queue, unless it is in it already. To take what is
-- this owner's already is the replay of a take whose reply was lost: it changes
-- nothing, but may raise the TTL. If it is another's turn to take the free lock,
-- that one is told once more.
-- KEYS lock queue timeouts alive token... (at most one, for an acquisition that is to have a token)
-- ARGV lease_ms owner channel client enqueue allowance_ms token_ttl_ms... (enqueue: 0, 1, or the nonce of one who can be given the lock; the TTL 0: the token key never expires)
-- acked
-- returns the token, or 1, if the lock is the owner's, else {TTL in ms, field
-- of the owner or nothing, head of the queue or nothing, 1 if the caller was
-- put into the queue by this call}
local queue, timeouts, alive = KEYS[2], KEYS[3], KEYS[4]
local lease, owner, client, enqueue = ARGV[1], ARGV[2], ARGV[4], ARGV[5] ~= '0'
local allowance, token_key, token_ttl_ms = tonumber(ARGV[6]), KEYS[5], ARGV[7]
-- include token
-- include fairlock
-- poll says that the client lives, and which of its waiters can be given the lock, and
-- listen here. Who has been silent is forgotten, but not each time that a client lines up again.
local function poll()
  local named = enqueue and ARGV[5] ~= '1'
  if named then
    local counted = (listening(ARGV[3] .. ':' .. owner, 0) or 0) > 0
    named = redis.call('ZADD', alive, now, client, ARGV[5] .. (counted and '.5' or ''), nonce(owner))
  end
  if (named or redis.call('ZADD', alive, now, client)) ~= 1 then
    redis.call('ZREMRANGEBYSCORE', alive, '-inf', now - silence)
  end
  redis.call('PEXPIRE', alive, kept)
end

local holder, another = unpack(redis.call('HRANDFIELD', KEYS[1], '2'))
if another then -- it is no fair lock, and perhaps none at all
  -- include fields
end
if holder == owner then
  -- include raise
  raise(KEYS[1], lease)
  return fencing_token(true)
end
local first, tail, score, last, head = redis.call('LINDEX', queue, '0')
-- look looks for the end of the queue, and for the scores of the caller and of both ends.
local function look()
  tail = redis.call('LINDEX', queue, '-1')
  score, last, head = unpack(redis.call('ZMSCORE', timeouts, owner, tail or owner, first or owner))
end
if first then
  look()
else
  redis.call('DEL', queue, timeouts, alive) -- as front does
end
local dead -- those who are left in the queue and have to be dropped, if nobody else is
local whose, at_end, swept = first, tail -- whose turn it is if the lock is free, and if that is the first, the tail
if first and (holder or first ~= owner) then -- or else it is the caller's turn, who lives
  if enqueue then
    poll()
  end
  if not (holder and enqueue and not score and head and finite(head) > now + allowance / 2) then -- or else others see to the front
    if holder then
      first, dead = front(enqueue)
    else
      whose, at_end, swept = turn(ARGV[3])
      first = redis.call('LINDEX', queue, '0')
    end
    if first then
      look()
    else -- those who are left in the queue are dead
      tail, score, last = nil, nil, nil
    end
  end
end
if not holder and (not whose or whose == owner) then
  local token = fencing_token(false)
  if first then
    serve(owner, at_end)
  end
  redis.call('HSET', KEYS[1], owner, '1')
  redis.call('PEXPIRE', KEYS[1], lease)
  return token
end
local ttl, fresh = redis.call('PTTL', KEYS[1]), 0
if enqueue and not score then
  local n, ends = redis.call('RPUSH', queue, owner), last and finite(last) or now + math.max(ttl, 0)
  if not tail or (ours(tail) and loose(ends) and n <= most) then
    ends = math.max(math.floor(ends) + allowance, now + (first and n or 1) * allowance) + 0.5
    redis.call('ZADD', timeouts, now + allowance, tail or owner, ends, owner)
  else
    if not ours(tail) or loose(ends) then
      tighten()
    end
    redis.call('ZADD', timeouts, math.floor(math.max(ends, now)) + allowance, owner)
  end
  fresh = 1
  if not first then
    if dead then
      drop(dead, owner)
    end
    first = owner
    poll()
  end
end
if not holder then
  redis.call('PUBLISH', ARGV[3] .. ':' .. (swept and whose or owner), '0') -- or the caller is to go on with the sweep
end
return {ttl, holder or '', first or '', fresh}
