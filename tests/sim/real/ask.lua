-- Stands before a script, in a real server. The script's own text follows as the function script.
local server, given, log, far = redis, cmsgpack.unpack(ARGV[#ARGV]), {}, 1e9
ARGV[#ARGV] = nil

-- tell says what a value is, as a reply that a client can compare.
local function tell(v)
  if v == true then return ':1' end
  if not v then return '_' end
  if type(v) == 'number' then return string.format(':%.0f', v < 0 and math.ceil(v) or math.floor(v)) end
  if type(v) == 'string' then return '$' .. v end
  if v.err then return '-' .. v.err end
  if v.ok then return '+' .. v.ok end
  local list = {}
  for _, x in ipairs(v) do list[#list + 1] = tell(x) end
  return list
end

-- later has a key end so late that it stays: the record says when it ends.
local function later(args)
  local function add(i)
    local ms = tonumber(args[i])
    if ms and ms > 0 then args[i] = string.format('%.0f', ms + far) end
  end
  if args[1] == 'PEXPIRE' then add(3) end
  for i = 4, args[1] == 'SET' and #args or 0 do
    if args[i - 1] == 'PX' then add(i) end
  end
end

local function ask(raises, ...)
  local args, texts = {...}, {}
  for i, v in ipairs(args) do texts[i] = type(v) == 'number' and string.format('%.17g', v) or v end
  local own = given[#log + 1]
  if own and own[1] ~= args[1] then own = nil end
  local reply
  if own and own[2] == 'refused' then
    reply = {err = own[3]}
  else
    later(args)
    reply = server.pcall(unpack(args))
  end
  log[#log + 1] = {texts, tell(reply)}
  if own and own[2] == 'answered' then reply = own[3] end
  if raises and type(reply) == 'table' and reply.err then error(reply) end
  return reply
end

-- all returns what the server has.
local function all()
  local read = {
    string = function(k) return {server.call('GET', k)} end,
    hash = function(k) return server.call('HGETALL', k) end,
    list = function(k) return server.call('LRANGE', k, 0, -1) end,
    zset = function(k) return server.call('ZRANGE', k, 0, -1, 'WITHSCORES') end,
  }
  local keys = {}
  for i, k in ipairs(server.call('KEYS', '*')) do
    local kind = server.call('TYPE', k).ok
    keys[i] = {k, kind, server.call('PTTL', k) >= 0 and 1 or 0, read[kind](k)}
  end
  return keys
end

local redis = setmetatable({
  call = function(...) return ask(true, ...) end,
  pcall = function(...) return ask(false, ...) end,
}, {__index = server})
