-- The balance of an account: spend by period and process, and holds by process. The sum of all credits, and the spend before period T, may
-- exceed 2^53, so each is two numbers: `high` counts HALF, `low` is the rest. Amounts are exact wherever they decide.
-- `gateway/limits/memory-balances.ts` is the same in TypeScript.

local BALANCE_HEADS = 7

local function counted(value, name)
  if not value then return 0 end
  return integer(value, 0) or refuse('the field ' .. name .. ' of a balance holds no integer')
end

-- Counts the absolute state of a process. A period before T is in the base already. A period that ended before the last one waits for the
-- operator, which may have read it for the last time.
local function report_balance(balance, row)
  local v = balance.values
  local before, known = v[5], v[4]
  v[4] = math.max(v[4], row.period, balance.is_ready and v[1] + 1 or 0)
  for _, report in ipairs(row.spent) do v[4] = math.max(v[4], report.period) end
  if balance.is_ready and v[4] > math.max(v[1] + MAX_AHEAD, known) then refuse('the period is too far ahead') end
  for i, report in ipairs(row.spent) do
    local at = BALANCE_HEADS + i
    local is_open = report.period >= v[1] and report.period >= v[4] - 1
    if is_open and report.spent > v[at] then
      v[5] = v[5] + (report.spent - v[at])
      v[at] = report.spent
    end
  end
  if v[5] > before and v[5] > MAX_OPEN_SPEND then refuse('the open periods of the balance have too much spend') end
  v[6] = math.max(0, sum(v[6] - v[7], row.held))
  v[7] = row.held
end

-- Reads what a call needs of the balance, by one HMGET, and counts the report of the call. Values: T, high and low of the base, n, s, H; of this
-- process h, then the spend of each reported period. Returns nil for a call without a balance.
local function load_balance(key, call)
  local row = call.balance
  if not row then return nil end
  if not key then refuse('the key of the balance is missing') end
  local names, values = { 'T', 'bh', 'bl', 'n', 's', 'H', 'h:' .. call.process }, {}
  for i, report in ipairs(row.spent) do names[BALANCE_HEADS + i] = 'c:' .. text(report.period) .. ':' .. call.process end
  local found = fetch(key, names)
  for i, name in ipairs(names) do values[i] = counted(found[i], name) end
  local balance = { names = names, was = found, values = values, is_ready = found[1] and true or false }
  report_balance(balance, row)
  return balance
end

-- Whether the call asks for units of a balance that must not grant yet: not every process has reported what it holds.
local function is_unready(row, balance)
  return balance and row.credits and row.need + row.ask > 0 and not balance.is_ready
end

-- Credits minus the spend of all processes; what running requests hold is a part of it.
local function unspent_of(row, v)
  local high = math.max(-MAX_HALVES, math.min(MAX_HALVES, row.credits.high - v[2]))
  return math.max(-MAX_SUM, high * HALF + (row.credits.low - v[3]) - v[5])
end

-- 0 not short, 1 nothing is left, 2 running requests hold the rest, 3 less is left than the need.
local function balance_short(row, balance)
  if not balance or not row.credits or row.need <= 0 then return 0 end
  local unspent = unspent_of(row, balance.values)
  if unspent - balance.values[6] >= row.need then return 0 end
  if unspent <= 0 then return 1 end
  return unspent < row.need and 3 or 2
end

local function balance_grant(row, rest, live)
  local granted = math.max(0, math.min(rest, math.max(row.need, row.ask)))
  local free = rest - granted
  return granted + math.max(0, math.min(row.want, math.floor(free / FLOAT_PART), math.floor(free / (FLOAT_SHARE * live))))
end

local function balance_answer(call, balance, is_short, out)
  if not balance then return end
  local row, v = call.balance, balance.values
  local short, unspent, grant = balance_short(row, balance), 0, 0
  if row.credits and balance.is_ready then
    unspent = unspent_of(row, v)
    if not is_short then grant = balance_grant(row, unspent - v[6], call.live) end
  end
  v[6] = v[6] + grant
  v[7] = v[7] + grant
  local n = #out
  out[n + 1], out[n + 2], out[n + 3] = v[4], balance.is_ready and v[1] or -1, grant
  out[n + 4], out[n + 5], out[n + 6] = unspent, v[6], short
end

-- A call never writes T and the base. A balance that is all zero, and has no T, has no key.
local function save_balance(key, balance)
  if not balance then return end
  local set, deleted = {}, {}
  for i = 4, #balance.names do
    local value, was = balance.values[i], balance.was[i]
    if value == 0 then
      if was then deleted[#deleted + 1] = balance.names[i] end
    elseif not was or tonumber(was) ~= value then
      set[#set + 1] = balance.names[i]
      set[#set + 1] = text(value)
    end
  end
  if #set > 0 then redis.call('HSET', key, unpack(set)) end
  if #deleted > 0 then redis.call('HDEL', key, unpack(deleted)) end
end
