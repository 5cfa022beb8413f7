/** Lua that Redis runs. Each script is one atomic step; keys and arguments are named on top of it. */

/**
 * Applies changes to the present data set.
 * KEYS: meta, log, hash of keys, hash of models (of the epoch in ARGV).
 * ARGV: fence, epoch, newest revision seen, length of the log, then four per change: kind, op, id, record text ('' for del).
 * Returns {'epoch'} for another data set or an older state of this one, {'fenced', fence} for a newer leader, else {'ok', rev of each change…}.
 */
export const WRITE_SCRIPT = `
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'fence', 'rev')
if tonumber(meta[2] or '0') > tonumber(ARGV[1]) then return {'fenced', meta[2]} end
if meta[1] ~= ARGV[2] or tonumber(meta[3] or '0') < tonumber(ARGV[3]) then return {'epoch'} end
local function stamped(text, rev) return (string.gsub(text, '"rev":%d+', '"rev":' .. rev, 1)) end
redis.call('HSET', KEYS[1], 'fence', ARGV[1])
local out = {'ok'}
for i = 5, #ARGV, 4 do
  local kind, op, id, text = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local records = kind == 'key' and KEYS[3] or KEYS[4]
  local present = redis.call('HGET', records, id)
  local rev
  if op == 'put' then
    if present and stamped(present, '0') == stamped(text, '0') then
      rev = string.match(present, '"rev":(%d+)')
    else
      rev = redis.call('HINCRBY', KEYS[1], 'rev', 1)
      local record = stamped(text, rev)
      redis.call('HSET', records, id, record)
      redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], rev .. '-0', 'k', kind, 'op', 'put', 'id', id, 'd', record)
    end
  elseif present then
    rev = redis.call('HINCRBY', KEYS[1], 'rev', 1)
    redis.call('HDEL', records, id)
    redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], rev .. '-0', 'k', kind, 'op', 'del', 'id', id)
  else
    rev = redis.call('HGET', KEYS[1], 'rev')
  end
  out[#out + 1] = tostring(rev)
end
return out
`

/**
 * Switches to a data set that was written beside the old one.
 * KEYS: meta, log, new hash of keys, new hash of models (written to expire, lest a rebuild that broke off stays for ever).
 * ARGV: fence, schema, new epoch, rev, epoch expected to be there ('' = none).
 * Returns {'fenced', fence}, {'epoch'} when somebody switched meanwhile, or {'ok'}.
 */
export const SWITCH_SCRIPT = `
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'fence')
if tonumber(meta[2] or '0') > tonumber(ARGV[1]) then return {'fenced', meta[2]} end
if (meta[1] or '') ~= ARGV[5] then return {'epoch'} end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'schema', ARGV[2], 'epoch', ARGV[3], 'rev', ARGV[4], 'fence', ARGV[1], 'builtAt', redis.call('TIME')[1])
redis.call('PERSIST', KEYS[3])
redis.call('PERSIST', KEYS[4])
return {'ok'}
`

/**
 * Names the processes with a recent heartbeat and forgets those silent for an hour.
 * KEYS: pods, acks. ARGV: ms that a heartbeat counts for. Returns process, acknowledgement, process, …
 */
export const LIVE_SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - 3600000)
if #gone > 0 then redis.call('ZREM', KEYS[1], unpack(gone)); redis.call('HDEL', KEYS[2], unpack(gone)) end
local out = {}
for _, process in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[1], '+inf')) do
  out[#out + 1] = process
  out[#out + 1] = redis.call('HGET', KEYS[2], process) or ''
end
return out
`
