-- The operator reads balances whole, and merges them with its books. Both only grow, so a merge takes the maximum of each part.

local BASE_AND_SUMS = { 'bh', 'bl', 'n', 's', 'H' }

-- The number of a period as `text` writes it, else nil.
local function period_of(word)
  local period = integer(word, 0)
  if not period or period > LAST_PERIOD or text(period) ~= word then return nil end
  return period
end

-- Adds one field to a balance. Returns false for a field that no Headgate program writes; a field of another name may be of a newer one.
local function add_field(balance, name, value)
  if not value or #name > MAX_WORD_BYTES then return false end
  local kind, rest = string.match(name, '^([ch]):(.+)$')
  if not kind then
    balance.heads[name] = value
    return true
  end
  local word, process = nil, rest
  if kind == 'c' then word, process = string.match(rest, '^(%d+):(.+)$') end
  local period = word and period_of(word)
  if not process or #process > MAX_PROCESS_BYTES or (kind == 'c' and not period) then return false end
  local list = kind == 'c' and balance.spent or balance.held
  list[#list + 1] = { name = name, period = period, value = value }
  return true
end

-- Returns { heads by name, spent, held }; nil for an absent key, and false for a damaged one.
local function whole_balance(key)
  local kind, bytes = size_of(key, MAX_BUDGET_FIELDS)
  if kind == 'none' then return nil end
  if kind ~= 'hash' or bytes < 0 or bytes > MAX_BUDGET_BYTES then return false end
  local balance = { heads = {}, spent = {}, held = {} }
  local flat = redis.call('HGETALL', key)
  for i = 1, #flat, 2 do
    if not add_field(balance, flat[i], integer(flat[i + 1], 0)) then return false end
  end
  local heads = balance.heads
  if (heads.bl or 0) >= HALF or (heads.n or 0) > LAST_PERIOD or (heads.T or 0) >= LAST_PERIOD then return false end
  return balance
end

local function total_of(list)
  local total = 0
  for _, entry in ipairs(list) do total = sum(total, entry.value) end
  return total
end

-- Whether the sums are those of their parts, and no spend is in the base too.
local function is_consistent(balance)
  local heads = balance.heads
  for _, entry in ipairs(balance.spent) do
    if entry.period < (heads.T or 0) then return false end
  end
  return (heads.s or 0) == total_of(balance.spent) and (heads.H or 0) == total_of(balance.held)
end

-- KEYS: balance. Returns { 'absent' }, { 'damaged' }, or { 'found', T or '', n, high and low of the base }, then the name and the value of each
-- spend and each hold.
local function balance_(keys)
  local balance = whole_balance(keys[1])
  if balance == nil then return { 'absent' } end
  if not balance or not is_consistent(balance) then return { 'damaged' } end
  local heads = balance.heads
  local out = { 'found', heads.T and text(heads.T) or '', text(heads.n or 0), text(heads.bh or 0), text(heads.bl or 0) }
  for _, list in ipairs({ balance.spent, balance.held }) do
    for _, entry in ipairs(list) do
      out[#out + 1] = entry.name
      out[#out + 1] = text(entry.value)
    end
  end
  return out
end

-- The spend of the books: an entry for each three arguments from the fifth on.
local function books_of(args)
  local books = { T = period_of(args[1]), high = integer(args[2], 0), low = integer(args[3], 0), is_ready = args[4] == '1', spent = {} }
  if not books.T or books.T >= LAST_PERIOD or not books.high or not books.low or books.low >= HALF then refuse('wrong arguments') end
  for i = 5, #args, 3 do
    local period, process, value = period_of(args[i]), args[i + 1], integer(args[i + 2], 0)
    if not period or process == '' or #process > MAX_PROCESS_BYTES or not value then refuse('wrong arguments') end
    books.spent[#books.spent + 1] = { name = 'c:' .. args[i] .. ':' .. process, period = period, value = value }
  end
  return books
end

-- The later T wins with its base; of one T, the larger base.
local function merge_base(heads, books)
  local is_later = heads.T and books.T > heads.T or not heads.T and books.is_ready
  local high, low = heads.bh or 0, heads.bl or 0
  local is_larger = heads.T == books.T and (books.high > high or books.high == high and books.low > low)
  if is_later or is_larger then heads.T, heads.bh, heads.bl = books.T, books.high, books.low end
end

-- The larger spend of each period and process, by name, without periods that the base includes.
local function merge_spent(balance, books, from)
  local merged, names, deleted = {}, {}, {}
  for _, list in ipairs({ balance.spent, books.spent }) do
    for _, entry in ipairs(list) do
      if entry.period >= from and entry.value > 0 then
        if not merged[entry.name] then names[#names + 1] = entry.name end
        merged[entry.name] = math.max(merged[entry.name] or 0, entry.value)
      end
    end
  end
  for _, entry in ipairs(balance.spent) do
    if not merged[entry.name] then deleted[#deleted + 1] = entry.name end
  end
  return merged, names, deleted
end

-- KEYS: balance. ARGV: T, high and low of the base, '1' if the balance may grant from now on, then period, process and spend of each entry.
-- Without that permission, a balance without T gets none, and its base stays unknown. Returns 'ok'.
local function merge_(keys, args)
  if #args % 3 ~= 1 or #args < 4 or #args > 3 * MAX_BUDGET_FIELDS then refuse('wrong arguments') end
  local books, balance = books_of(args), whole_balance(keys[1])
  if balance == false then refuse('the balance is damaged') end
  balance = balance or { heads = {}, spent = {}, held = {} }
  local heads = balance.heads
  merge_base(heads, books)
  local from = heads.T or books.T
  heads.n = math.max(heads.n or 0, from + 1)
  local merged, names, deleted = merge_spent(balance, books, from)
  heads.s, heads.H = 0, total_of(balance.held)
  local set = {}
  for _, name in ipairs(names) do
    heads.s = sum(heads.s, merged[name])
    set[#set + 1] = name
    set[#set + 1] = text(merged[name])
  end
  if heads.T then set[#set + 1], set[#set + 2] = 'T', text(heads.T) end
  for _, name in ipairs(BASE_AND_SUMS) do
    if (heads[name] or 0) > 0 then set[#set + 1], set[#set + 2] = name, text(heads[name]) else deleted[#deleted + 1] = name end
  end
  for i = 1, #set, 1000 do redis.call('HSET', keys[1], unpack(set, i, math.min(i + 999, #set))) end
  for i = 1, #deleted, 1000 do redis.call('HDEL', keys[1], unpack(deleted, i, math.min(i + 999, #deleted))) end
  return 'ok'
end

-- KEYS: balance. ARGV: a period. The present period is at least this one from now on. Returns 'ok'.
local function raise_(keys, args)
  local period = period_of(args[1] or '') or refuse('wrong arguments')
  if counted(fetch(keys[1], { 'n' })[1], 'n') < period then redis.call('HSET', keys[1], 'n', text(period)) end
  return 'ok'
end

-- KEYS: balance. ARGV: a dead process, and what it held at the last read. Drops what it holds, unless the amount has changed since, as only a
-- living process changes it: the running requests of a dead one have ended, and their costs are never known. Returns the amount.
local function free_(keys, args)
  local hold = 'h:' .. (args[1] or '')
  local found = fetch(keys[1], { hold, 'H' })
  local held = counted(found[1], hold)
  if text(held) ~= args[2] then return '0' end
  local left = math.max(0, counted(found[2], 'H') - held)
  if found[1] then redis.call('HDEL', keys[1], hold) end
  if found[1] and left > 0 then redis.call('HSET', keys[1], 'H', text(left)) end
  if found[1] and left == 0 then redis.call('HDEL', keys[1], 'H') end
  return text(held)
end
