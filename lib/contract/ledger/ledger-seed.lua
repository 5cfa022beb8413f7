-- Functions for the operator.

-- KEYS: budget. ARGV: seed, then field and spend of each checkpoint. Without a seed, or with less spend than a checkpoint, the budgets restart
-- under this seed. Returns the seed in force.
local function seed_(keys, args)
  if #args > 1 + 2 * MAX_REPORTS or #args % 2 ~= 1 or args[1] == '' then refuse('wrong arguments') end
  local fields, low = { 'seed' }, {}
  for i = 2, #args, 2 do fields[#fields + 1] = args[i] .. ':s' end
  local found = fetch(keys[1], fields)
  for i = 2, #fields do
    local spent = integer(args[2 * i - 1], 0) or refuse('a checkpoint is not an integer')
    if stored(found[i], fields[i]) < spent then low[#low + 1] = { fields[i], text(spent) } end
  end
  if found[1] and #low == 0 then return found[1] end
  for _, field in ipairs(low) do redis.call('HSET', keys[1], unpack(field)) end
  renew(keys[1], args[1])
  return args[1]
end

-- Fields that match. Refuses a hash with too many fields.
local function fields_of(key, matches)
  local found = {}
  if redis.call('HLEN', key) > MAX_BUDGET_FIELDS then refuse('too many fields') end
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if matches(field) then found[#found + 1] = field end
  end
  return found
end

local function ends_with(suffix)
  return function(field) return string.sub(field, -#suffix) == suffix end
end

-- KEYS: budget. ARGV: a dead process. Its holds become unsettled: they count as spent. Returns their sum.
local function reap_(keys, args)
  local key, process = keys[1], args[1]
  local set, deleted, reaped = {}, {}, 0
  for _, field in ipairs(fields_of(key, ends_with(':h:' .. process))) do
    local base = string.sub(field, 1, -(#process + 4))
    local names = { field, base .. ':H', base .. ':u', base .. ':z:' .. process }
    local v = {}
    for i, value in ipairs(redis.call('HMGET', key, unpack(names))) do v[i] = stored(value, names[i]) end
    reaped = reaped + v[1]
    deleted[#deleted + 1] = field
    for i, value in pairs({ [2] = math.max(0, v[2] - v[1]), [3] = sum(v[3], v[1]), [4] = sum(v[4], v[1]) }) do
      set[#set + 1] = names[i]
      set[#set + 1] = text(value)
    end
  end
  for i = 1, #deleted do
    redis.call('HSET', key, unpack(set, 6 * i - 5, 6 * i))
    redis.call('HDEL', key, deleted[i])
  end
  return text(reaped)
end

-- KEYS: budget. ARGV: fields of windows that are over and checkpointed. Returns the number of deleted fields.
local function forget_(keys, args)
  if #args > MAX_REPORTS then refuse('too many windows') end
  local prefixes = {}
  for i, field in ipairs(args) do prefixes[i] = field .. ':' end
  local deleted = fields_of(keys[1], function(name)
    for _, prefix in ipairs(prefixes) do
      if string.sub(name, 1, #prefix) == prefix then return true end
    end
    return false
  end)
  for i = 1, #deleted, 1000 do redis.call('HDEL', keys[1], unpack(deleted, i, math.min(i + 999, #deleted))) end
  return #deleted
end

-- KEYS: budget. ARGV: a process that died 2 h ago. Forgets its spend; the sums keep it. Returns the number of deleted fields.
local function bury_(keys, args)
  local deleted = fields_of(keys[1], ends_with(':c:' .. args[1]))
  for i = 1, #deleted, 1000 do redis.call('HDEL', keys[1], unpack(deleted, i, math.min(i + 999, #deleted))) end
  return #deleted
end
