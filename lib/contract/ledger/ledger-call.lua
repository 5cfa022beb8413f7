-- Checked integers, the time, and the argument of a call.

local MAX = 9007199254740991
local KINDS = { 'r', 't' }

-- Exact up to 2^53 and fast: Redis and `..` write a number as a float, which takes longer than the command.
local function text(number)
  return string.format('%d', number)
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

-- Values of a hash. A value longer than any of the library is not copied, since a copy would block Redis; it reads as an invalid integer.
-- Redis keeps only short values of small hashes in a listpack.
local function fetch(key, fields)
  local encoding = redis.call('OBJECT', 'ENCODING', key)
  if not encoding then return {} end
  if encoding ~= 'hashtable' then return redis.call('HMGET', key, unpack(fields)) end
  local is_long = {}
  local short = {}
  for i = 1, #fields do
    if redis.call('HSTRLEN', key, fields[i]) > MAX_VALUE_BYTES then is_long[i] = true else short[#short + 1] = fields[i] end
  end
  local values = #short > 0 and redis.call('HMGET', key, unpack(short)) or {}
  for i = 1, #fields do
    if is_long[i] then table.insert(values, i, 'too long') end
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

-- The argument: one LedgerCall as JSON. All of it is checked before the first write.

local function check_word(value, name)
  if type(value) ~= 'string' or #value > MAX_WORD_BYTES then refuse(name .. ' is missing or too long') end
end

local function check_number(value, name, lowest)
  if type(value) ~= 'number' or value < lowest or value > MAX or value % 1 ~= 0 then refuse(name .. ' is not an integer') end
end

local function check_table(value, name)
  if type(value) ~= 'table' then refuse(name .. ' is missing') end
end

local function check_numbers(row, fields)
  for i = 1, #fields do
    local value = row[fields[i]]
    if type(value) ~= 'number' or value < 0 or value > MAX or value % 1 ~= 0 then refuse(fields[i] .. ' is not an integer') end
  end
end

local function check_rows(rows, name, cap, check)
  check_table(rows, name)
  if #rows > cap then refuse('too many rows of ' .. name) end
  for i = 1, #rows do
    check_table(rows[i], name)
    check(rows[i])
  end
end

local function check_kind(row)
  if row.kind ~= 'r' and row.kind ~= 't' then refuse('unknown kind of rate') end
end

local SLOT_NUMBERS = { 'slot', 'amount' }
local function check_slot(row)
  check_kind(row)
  check_numbers(row, SLOT_NUMBERS)
end

local REPORT_NUMBERS = { 'held', 'spent', 'acknowledged', 'base', 'seen' }
local function check_report(row)
  check_word(row.field, 'field')
  check_word(row.seed, 'seed')
  check_numbers(row, REPORT_NUMBERS)
end

local RATE_NUMBERS = { 'limit', 'need', 'ask', 'want', 'leaseMs' }
local function check_rate(row)
  check_kind(row)
  check_numbers(row, RATE_NUMBERS)
  row.leaseMs = math.min(row.leaseMs, LONGEST_LEASE_MS)
end

local WINDOW_NUMBERS = { 'startMs', 'endMs' }
local function check_window(row)
  check_numbers(row, WINDOW_NUMBERS)
end

local BUDGET_NUMBERS = { 'amount', 'need', 'ask', 'want' }
local function check_budget(row)
  check_word(row.budget, 'budget')
  check_numbers(row, BUDGET_NUMBERS)
  check_rows(row.windows, 'windows', 2, check_window)
end

local SPENT_NUMBERS = { 'period', 'spent' }
local BALANCE_NUMBERS = { 'period', 'held', 'need', 'ask', 'want' }

-- The periods ascend, so that no spend counts twice.
local function check_balance(row)
  check_table(row, 'balance')
  check_numbers(row, BALANCE_NUMBERS)
  if row.credits ~= nil then
    check_table(row.credits, 'credits')
    check_number(row.credits.high, 'credits', -MAX)
    check_number(row.credits.low, 'credits', 0)
    if row.credits.low >= HALF then refuse('credits are too large') end
  end
  local last = -1
  check_rows(row.spent, 'spent', MAX_PERIODS, function(report)
    check_numbers(report, SPENT_NUMBERS)
    if report.period <= last then refuse('periods do not ascend') end
    last = report.period
  end)
  if math.max(row.period, last) > LAST_PERIOD then refuse('a period is too large') end
end

local PERMIT_NUMBERS = { 'limit', 'held', 'need', 'ask', 'want' }
local NO_DEBTS = { r = 0, t = 0 }
local NO_BATCH = { number = 0, refunds = {}, bookings = {}, debts = NO_DEBTS }

local function check_batch(batch)
  check_table(batch, 'batch')
  check_number(batch.number, 'batch', 0)
  check_table(batch.debts, 'debts')
  check_numbers(batch.debts, KINDS)
  check_rows(batch.refunds, 'refunds', MAX_REFUNDS, check_slot)
  check_rows(batch.bookings, 'bookings', MAX_BOOKINGS, check_slot)
end

local function call_of(args)
  if text(MAX) ~= '9007199254740991' then refuse('a Redis of 32 bits cannot count; run one of 64 bits') end
  if #args ~= 1 or #args[1] > MAX_CALL_BYTES then refuse('the call is missing or too long') end
  local is_json, call = pcall(cjson.decode, args[1])
  if not is_json or type(call) ~= 'table' then refuse('the call is not a JSON object') end
  check_word(call.process, 'process')
  check_number(call.number, 'number', 1)
  check_number(call.acknowledged, 'acknowledged', 0)
  check_number(call.live, 'live', 1)
  check_number(call.earliestMs, 'earliestMs', 0)
  check_number(call.latestMs, 'latestMs', 0)
  if type(call.wasAway) ~= 'boolean' then refuse('wasAway is missing') end
  if call.batch == nil then call.batch = NO_BATCH else check_batch(call.batch) end
  check_rows(call.reports, 'reports', MAX_REPORTS, check_report)
  check_rows(call.rates, 'rates', 2, check_rate)
  check_rows(call.budgets, 'budgets', MAX_BUDGETS, check_budget)
  if call.permits ~= nil then
    check_table(call.permits, 'permits')
    check_numbers(call.permits, PERMIT_NUMBERS)
  end
  if call.balance ~= nil then check_balance(call.balance) end
  return call
end
