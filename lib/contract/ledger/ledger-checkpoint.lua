-- Reads and repairs of the operator.

-- Longest text of an integer.
local MAX_NUMBER_BYTES = 16
-- Longest name of a subject, of a process in a survey, and of a key; maximum number of words of a survey.
local MAX_SUBJECT_BYTES = 128
local MAX_PROCESS_BYTES = 300
local MAX_KEY_BYTES = 512
local MAX_SURVEY_WORDS = 2100
-- Maximum number of elements for an exact MEMORY USAGE.
local MAX_WEIGHED = 1024
local MAX_TAKEN = 10000
-- More names than there are subjects.
local MAX_SETTLED = 1000000

-- No key. Returns the revision of this text.
local function revision_()
  return REVISION
end

-- The value of a field, or nil if it is too long: a forged one may have 512 MB.
local function short_value(key, field, longest)
  if redis.call('HSTRLEN', key, field) > longest then return nil end
  return redis.call('HGET', key, field) or ''
end

-- KEYS: budget. ARGV: fields of windows. Returns { 'unseeded' }, { 'damaged' }, or { 'seeded', seed }, then s, u, H of each field.
local function read_(keys, args)
  if #args > MAX_REPORTS then refuse('too many windows') end
  local seed = short_value(keys[1], 'seed', MAX_WORD_BYTES)
  if not seed then return { 'damaged' } end
  if seed == '' then return { 'unseeded' } end
  local out = { 'seeded', seed }
  for _, field in ipairs(args) do
    for _, part in ipairs({ ':s', ':u', ':H', ':B' }) do
      local value = short_value(keys[1], field .. part, MAX_NUMBER_BYTES)
      if value == '' then value = '0' end
      if not value or not integer(value, 0) then return { 'damaged' } end
      if part ~= ':B' then out[#out + 1] = value end
    end
  end
  return out
end

local function size_of(key, longest)
  local kind = redis.call('TYPE', key).ok
  local length = kind == 'hash' and redis.call('HLEN', key) or kind == 'set' and redis.call('SCARD', key) or -1
  if length < 0 or length > longest then return kind, -1 end
  return kind, redis.call('MEMORY', 'USAGE', key, 'SAMPLES', length > MAX_WEIGHED and '5' or '0') or 0
end

-- KEYS: set of names. ARGV: number of names. Removes names and returns them, except names too long for a subject.
local function settled_(keys, args)
  local count = math.min(integer(args[1], 1) or refuse('wrong arguments'), MAX_TAKEN)
  local names = {}
  for _, name in ipairs(redis.call('SPOP', keys[1], count)) do
    if #name <= MAX_SUBJECT_BYTES then names[#names + 1] = name end
  end
  if redis.call('SCARD', keys[1]) > MAX_SETTLED then redis.call('UNLINK', keys[1]) end
  return names
end

-- No key. ARGV: cursor, pattern, number of keys. Returns the next cursor, then name, type and bytes of each key: -1 for a key with too
-- many elements. Drops a key with a name of megabytes, since no reply could report it.
local function walk_(_, args)
  local count = math.min(integer(args[3], 1) or refuse('wrong arguments'), 1000)
  local step = redis.call('SCAN', args[1], 'MATCH', args[2], 'COUNT', text(count))
  local out = { step[1] }
  for _, name in ipairs(step[2]) do
    if #name > MAX_KEY_BYTES then
      redis.call('UNLINK', name)
    else
      local kind, bytes = size_of(name, MAX_BUDGET_FIELDS)
      for _, word in ipairs({ name, kind, text(bytes) }) do out[#out + 1] = word end
    end
  end
  return out
end

-- KEYS: budget. Returns { 'unseeded' }, { 'damaged' }, or { 'seeded' }, then 'window' and each field with a spend, 'holds' and each
-- process with a hold, 'spent' and each process with a known spend.
local function survey_(keys)
  local kind, bytes = size_of(keys[1], MAX_BUDGET_FIELDS)
  if kind == 'none' then return { 'unseeded' } end
  if kind ~= 'hash' or bytes < 0 or bytes > MAX_BUDGET_BYTES then return { 'damaged' } end
  local out, known, is_seeded = { 'seeded' }, {}, false
  local function add(what, name)
    local id = what .. ' ' .. name
    if known[id] then return end
    known[id] = true
    out[#out + 1] = what
    out[#out + 1] = name
  end
  local flat = redis.call('HGETALL', keys[1])
  for i = 1, #flat, 2 do
    local name, value = flat[i], flat[i + 1]
    if name == 'seed' then
      is_seeded = true
    else
      if not integer(value, 0) then return { 'damaged' } end
      local window = string.match(name, '^(.+):s$')
      local part, process = string.match(name, '^[^:]+:[^:]+:[^:]+:[^:]+:([hc]):(.+)$')
      if #name > MAX_WORD_BYTES or #(process or '') > MAX_PROCESS_BYTES or #out > MAX_SURVEY_WORDS then return { 'damaged' } end
      if process then add(part == 'h' and 'holds' or 'spent', process) elseif window then add('window', window) end
    end
  end
  return is_seeded and out or { 'unseeded' }
end
