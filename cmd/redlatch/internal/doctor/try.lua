-- Tries commands on a key of its own and deletes what they have made.
-- KEYS key
-- ARGV n, command and n-1 arguments, and so on; the first is DEL
-- returns for each that fails: which it was, and the error
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {}
end
local failed = {}
local i, nth = 1, 0
while i < #ARGV do
  local n = tonumber(ARGV[i])
  local answer = redis.pcall(unpack(ARGV, i + 1, i + n))
  if type(answer) == 'table' and answer.err then
    failed[#failed + 1] = nth
    failed[#failed + 1] = answer.err
    if nth == 0 then
      return failed
    end
  end
  redis.call('DEL', KEYS[1])
  i, nth = i + n + 1, nth + 1
end
return failed
