-- Looks at a generation of a barrier for those of a client who have arrived in
-- it, and says that the client lives.
-- KEYS barrier record alive ended
-- ARGV generation client lease_ms channel
-- returns {how it stands, who has ended it}: 'waits', how it has ended, or 'gone'
local generation, client, channel = ARGV[1], ARGV[2], ARGV[4]
local lease_ms = tonumber(ARGV[3])
-- include barrier
-- include barrier.alive
local how, who = ending()
if how then
  return {how, who}
end
if redis.call('HGET', barrier, 'generation') ~= generation or redis.call('EXISTS', record) == 0 then
  return {'gone', ''}
end
local dead = broken()
if dead then
  return {'dead', dead}
end
lives()
return {'waits', ''}
