-- Sizes are bounded by constants, because data that gateways may write are never trusted. A live process that a repair drops comes back
-- with its next heartbeat.

local MAX_CHANGES = 200
local MAX_PROCESSES = 4096
local MAX_NAME_BYTES = 512
local MAX_ACK_BYTES = 65536
local MAX_PODS_BYTES = 8388608
local MAX_ACKS_BYTES = 16777216
local FETCHED_AT_ONCE = 1000
local FORGET_MS = 3600000

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function heartbeat_(keys, args)
  redis.call('ZADD', keys[1], string.format('%.0f', now_ms()), args[1])
  redis.call('HSET', keys[2], args[1], args[2])
  return 1
end

local function leave_(keys, args)
  redis.call('ZREM', keys[1], args[1])
  redis.call('HDEL', keys[2], args[1])
  return 1
end

local function stamped(text, rev)
  return (string.gsub(text, '"rev":%d+', '"rev":' .. rev, 1))
end

local function write_(keys, args)
  local kinds = #keys - 2
  if #args > 5 + kinds + 4 * MAX_CHANGES then return redis.error_reply('ERR too many changes') end
  local meta = redis.call('HMGET', keys[1], 'epoch', 'fence', 'rev', 'installation')
  local owner = meta[4] or ''
  if owner ~= '' and owner ~= args[3] then return { 'installation', owner } end
  if tonumber(meta[2] or '0') > tonumber(args[1]) then return { 'fenced', meta[2] } end
  if meta[1] ~= args[2] or tonumber(meta[3] or '0') < tonumber(args[4]) then return { 'epoch' } end
  redis.call('HINCRBY', keys[1], 'rev', 0) -- ends a call of the gateways' user, who has no right to it: this function writes into full memory
  redis.call('HSET', keys[1], 'fence', args[1], 'installation', args[3])
  local hashes = {}
  for i = 1, kinds do hashes[args[5 + i]] = keys[2 + i] end
  local out = { 'ok' }
  local function log(kind, op, id)
    local rev = redis.call('HINCRBY', keys[1], 'rev', 1)
    redis.call('XADD', keys[2], 'MAXLEN', '~', args[5], string.format('%.0f-0', rev), 'k', kind, 'op', op, 'id', id)
    return string.format('%.0f', rev)
  end
  for i = 6 + kinds, #args, 4 do
    local kind, op, id, text = args[i], args[i + 1], args[i + 2], args[i + 3]
    local records = hashes[kind]
    local present = redis.call('HGET', records, id)
    local rev
    if op == 'put' then
      if present and stamped(present, '0') == stamped(text, '0') then
        rev = string.match(present, '"rev":(%d+)')
      else
        rev = log(kind, 'put', id)
        redis.call('HSET', records, id, stamped(text, rev))
      end
    elseif present then
      rev = log(kind, 'del', id)
      redis.call('HDEL', records, id)
    else
      rev = redis.call('HGET', keys[1], 'rev')
    end
    out[#out + 1] = tostring(rev)
  end
  return out
end

local function switch_(keys, args)
  local meta = redis.call('HMGET', keys[1], 'epoch', 'fence', 'installation')
  local owner = meta[3] or ''
  if owner ~= '' and owner ~= args[3] and args[7] ~= '1' then return { 'installation', owner } end
  if tonumber(meta[2] or '0') > tonumber(args[1]) then return { 'fenced', meta[2] } end
  if (meta[1] or '') ~= args[6] then return { 'epoch' } end
  redis.call('DEL', keys[1], keys[2])
  redis.call('HSET', keys[1], 'schema', args[4], 'epoch', args[2], 'rev', args[5], 'fence', args[1],
    'builtAt', redis.call('TIME')[1], 'installation', args[3])
  for i = 3, #keys do redis.call('PERSIST', keys[i]) end
  return { 'ok' }
end

local function unlink_unless(key, wanted)
  local kind = redis.call('TYPE', key).ok
  if kind ~= wanted and kind ~= 'none' then redis.call('UNLINK', key) end
end

local function bytes_of(key)
  local size = redis.pcall('MEMORY', 'USAGE', key, 'SAMPLES', '0')
  return type(size) == 'number' and size or 0
end

local function repair_pods(pods, now)
  unlink_unless(pods, 'zset')
  if redis.call('ZCARD', pods) > 4 * MAX_PROCESSES then redis.call('UNLINK', pods) end
  redis.call('ZREMRANGEBYSCORE', pods, string.format('(%.0f', now), '+inf')
  redis.call('ZREMRANGEBYSCORE', pods, '-inf', string.format('%.0f', now - FORGET_MS))
  if bytes_of(pods) > MAX_PODS_BYTES then redis.call('UNLINK', pods) end
end

local function repair_acks(acks, pods, live)
  unlink_unless(acks, 'hash')
  if bytes_of(acks) > MAX_ACKS_BYTES then
    for _, process in ipairs(live) do
      if redis.call('HSTRLEN', acks, process) > MAX_ACK_BYTES then redis.call('HDEL', acks, process) end
    end
  end
  if redis.call('HLEN', acks) > 4 * MAX_PROCESSES or bytes_of(acks) > MAX_ACKS_BYTES then redis.call('UNLINK', acks) end
  if redis.call('HLEN', acks) <= redis.call('ZCARD', pods) then return end
  for _, process in ipairs(redis.call('HKEYS', acks)) do
    if not redis.call('ZSCORE', pods, process) then redis.call('HDEL', acks, process) end
  end
end

local function live_processes(pods, since)
  local named = {}
  for _, process in ipairs(redis.call('ZRANGEBYSCORE', pods, since, '+inf', 'LIMIT', 0, MAX_PROCESSES)) do
    if #process > MAX_NAME_BYTES then
      redis.call('ZREM', pods, process)
    else
      named[#named + 1] = process
    end
  end
  return named
end

local function live_(keys, args)
  local pods, acks, now = keys[2], keys[3], now_ms()
  repair_pods(pods, now)
  local live = live_processes(pods, string.format('%.0f', now - tonumber(args[1])))
  repair_acks(acks, pods, live)
  local meta = redis.call('HMGET', keys[1], 'epoch', 'rev')
  local out = { meta[1] or '', meta[2] or '0' }
  for first = 1, #live, FETCHED_AT_ONCE do
    local last = math.min(first + FETCHED_AT_ONCE - 1, #live)
    for i, text in ipairs(redis.call('HMGET', acks, unpack(live, first, last))) do
      local process = live[first + i - 1]
      if text and #text > MAX_ACK_BYTES then
        redis.call('HDEL', acks, process)
        text = ''
      end
      out[#out + 1] = process
      out[#out + 1] = text or ''
    end
  end
  return out
end
