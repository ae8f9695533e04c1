-- Counts the subscribers of channels at the node that has a key.
-- KEYS key (says which node; as a channel it has no subscribers)
-- ARGV channel...
-- returns how many each has (256 channels at most)
local answer = redis.call('PUBSUB', 'NUMSUB', KEYS[1], unpack(ARGV))
local counts = {}
for i = 4, #answer, 2 do
  counts[#counts + 1] = answer[i]
end
return counts
