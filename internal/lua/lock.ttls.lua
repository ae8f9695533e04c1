-- Reads how long keys last: those of a read-write lock that keep its readers.
-- KEYS key...
-- ARGV (none)
-- returns for each key its TTL in ms; -2 if there is no such key, -1 if it never
-- expires
local ttls = {}
for i, key in ipairs(KEYS) do
  ttls[i] = redis.call('PTTL', key)
end
return ttls
