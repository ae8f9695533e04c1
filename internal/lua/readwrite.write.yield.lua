-- Gives other processes their turn, if any of them waits. Otherwise the lock,
-- held to write, moves to a new owner and stays.
-- KEYS lock token... (at most one, for an acquisition that is to have a token)
-- ARGV owner new_owner lease_ms channel own_subscriptions yield_anyway token_ttl_ms... (0: the token key never expires)
-- returns -1 if the lock is neither owner's, {token or 1} if it is the new
-- owner's now, else how many other subscribers it was released to
-- include gone
local owner, new, lease = ARGV[1], ARGV[2] .. ':write', ARGV[3]
local token_key, token_ttl_ms = KEYS[2], ARGV[7]
-- include token
-- include tell
-- include readwrite.timeout
if redis.call('HEXISTS', KEYS[1], owner .. ':write') == 0 then
  if redis.call('HEXISTS', KEYS[1], new) == 0 then
    return gone() - 1
  end
  if redis.call('PTTL', KEYS[1]) < tonumber(lease) then
    redis.call('PEXPIRE', KEYS[1], lease)
  end
  return {fencing_token(true)}
end
local others = listening(ARGV[4], ARGV[5]) or 0
if others > 0 or ARGV[6] == '1' then
  redis.call('DEL', KEYS[1], timeout_key(KEYS[1], owner, 1))
  redis.call('PUBLISH', ARGV[4], '1')
  return others
end
redis.call('PEXPIRE', KEYS[1], lease) -- first: what takes memory must not be the first to write
redis.call('HSET', KEYS[1], new, 1)
redis.call('HDEL', KEYS[1], owner .. ':write', owner) -- of what it read inside, too
redis.call('DEL', timeout_key(KEYS[1], owner, 1))
return {fencing_token(false)}
