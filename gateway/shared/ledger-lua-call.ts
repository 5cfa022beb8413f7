/** Lua of the ledger: checked integers, the time, and the arguments of a call. First part: the others use it. */
export const CALL_LUA = `
local MAX = 9007199254740991
local KINDS = { 'r', 't' }

local function text(number)
  return string.format('%.0f', number)
end

local function refuse(message)
  error({ err = 'ERR ledger: ' .. message })
end

local function integer(value, lowest)
  if type(value) ~= 'string' or #value > 16 or not string.match(value, '^%-?%d+$') then return nil end
  local number = tonumber(value)
  if number < lowest or number > MAX then return nil end
  return number
end

local function stored(value, name)
  if not value then return 0 end
  return integer(value, -MAX) or refuse('the field ' .. name .. ' holds no integer')
end

-- Values of a hash. One that is longer than any of ours is not read, since a copy of it would hold Redis up; it reads as no integer.
-- Redis keeps short values of small hashes in a listpack: there nothing can be long.
local function fetch(key, fields)
  if redis.call('OBJECT', 'ENCODING', key) ~= 'hashtable' then return redis.call('HMGET', key, unpack(fields)) end
  local values = {}
  for i = 1, #fields do
    if redis.call('HSTRLEN', key, fields[i]) > MAX_VALUE_BYTES then
      values[i] = 'too long'
    else
      values[i] = redis.call('HGET', key, fields[i])
    end
  end
  return values
end

local function time_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function slot_after(now, lease)
  return math.floor((now + lease + WINDOW_MS) / SLOT_MS) + 1
end

-- Arguments, read one after the other.
local function reader(args)
  local at = 0
  local read = {}
  function read.word()
    at = at + 1
    local value = args[at]
    if not value or #value > MAX_WORD_BYTES then refuse('argument ' .. at .. ' is missing or too long') end
    return value
  end
  function read.number(lowest)
    return integer(read.word(), lowest or 0) or refuse('argument ' .. at .. ' is no integer')
  end
  function read.rows(count, cap, row)
    if count > cap then refuse('too many rows') end
    local rows = {}
    for i = 1, count do rows[i] = row() end
    return rows
  end
  function read.finish()
    if at ~= #args then refuse('too many arguments') end
  end
  return read
end

local function kind_of(read)
  local kind = read.word()
  if kind ~= 'r' and kind ~= 't' then refuse('unknown kind of rate') end
  return kind
end

local function call_of(args)
  local read = reader(args)
  local call = { process = read.word(), number = read.number(1), acknowledged = read.number(), live = read.number(1), seed = read.word(),
    batch = read.number() }
  local counts = {}
  for i = 1, 7 do counts[i] = read.number() end
  local function slot_amount()
    return { kind = kind_of(read), slot = read.number(), amount = read.number() }
  end
  call.debts = { r = read.number(), t = read.number() }
  call.refunds = read.rows(counts[1], MAX_REFUNDS, slot_amount)
  call.bookings = read.rows(counts[2], MAX_BOOKINGS, slot_amount)
  call.usage = read.rows(counts[3], MAX_USAGE, function()
    return { model = read.word(), q = read.number(), i = read.number(), o = read.number(), c = read.number(), m = read.number(),
      e = read.number(), p = read.number() }
  end)
  call.reports = read.rows(counts[4], MAX_REPORTS, function()
    return { field = read.word(), held = read.number(), spent = read.number(), acknowledged = read.number(), seen = read.number() }
  end)
  call.permits = read.rows(counts[5], 1, function()
    return { limit = read.number(), held = read.number(), need = read.number(), ask = read.number(), want = read.number() }
  end)[1]
  call.rates = read.rows(counts[6], 2, function()
    return { kind = kind_of(read), limit = read.number(), need = read.number(), ask = read.number(), want = read.number(),
      lease = math.min(read.number(), LONGEST_LEASE_MS) }
  end)
  call.budgets = read.rows(counts[7], MAX_BUDGETS, function()
    return { id = read.word(), amount = read.number(), need = read.number(), ask = read.number(), want = read.number(),
      starts = { read.number(), read.number() }, ends = { read.number(), read.number() } }
  end)
  read.finish()
  return call
end
`.trim()
