-- Permits and budgets. Permits are { free, deleted }. free excludes the permits of this process; deleted lists fields of silent processes.

local function is_oversize(key, most)
  if redis.call('OBJECT', 'ENCODING', key) ~= 'hashtable' then return false end
  return redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0') > most
end

local function load_permits(key, call, now)
  if not call.permits then return nil end
  local deleted, sum = {}, 0
  if redis.call('HLEN', key) > 2 * MAX_PROCESSES or is_oversize(key, MAX_PERMITS_BYTES) then
    redis.call('PEXPIRE', key, PERMIT_TTL_MS, 'NX') -- after its expiry, every process reports its permits again
    refuse('too many processes hold permits')
  end
  local flat = redis.call('HGETALL', key)
  local held, expires = {}, {}
  for i = 1, #flat, 2 do
    local kind, process = string.sub(flat[i], 1, 2), string.sub(flat[i], 3)
    if kind == 'n:' then held[process] = integer(flat[i + 1], 0) or 0 end
    if kind == 'x:' then expires[process] = integer(flat[i + 1], 0) or 0 end
  end
  for process, amount in pairs(held) do
    if (expires[process] or 0) < now or expires[process] > now + PERMIT_LIFE_MS then
      deleted[#deleted + 1] = 'n:' .. process
      deleted[#deleted + 1] = 'x:' .. process
    elseif process ~= call.process then
      sum = sum + amount
    end
  end
  return { free = call.permits.limit - sum - call.permits.held, deleted = deleted }
end

local function permits_short(call, permits)
  return permits and call.permits.need > 0 and permits.free < call.permits.need
end

local function permit_grant(row, free, live)
  local granted = math.min(free, math.max(row.need, row.ask))
  if granted < 0 then return 0 end
  if row.limit < IDLE_PERMITS_FROM * live or 2 * (free - granted) < row.limit then return granted end
  return granted + math.min(row.want, math.floor((free - granted) / (2 * live)))
end

local function save_permits(key, call, permits, grant, now)
  if not permits then return end
  if #permits.deleted > 0 then redis.call('HDEL', key, unpack(permits.deleted)) end
  local held = call.permits.held + grant
  if held > 0 then
    redis.call('HSET', key, 'n:' .. call.process, text(held), 'x:' .. call.process, text(now + PERMIT_LIFE_MS))
    redis.call('PEXPIRE', key, PERMIT_TTL_MS)
  else
    redis.call('HDEL', key, 'n:' .. call.process, 'x:' .. call.process)
  end
end

-- Budgets. A book is one window: { s spent, H held, B base, u unsettled } and of this process { h held, c spent, z reaped }.

local function pick(row, now)
  for _, window in ipairs(row.windows) do
    if window.startMs <= now and now < window.endMs then return window.startMs end
  end
  return nil
end

local function want_book(wanted, field, process)
  if wanted.books[field] then return end
  local fields = wanted.fields
  wanted.books[field] = { first = #fields + 1, values = {} }
  for _, part in ipairs({ ':s', ':H', ':B', ':u' }) do fields[#fields + 1] = field .. part end
  for _, part in ipairs({ ':h:', ':c:', ':z:' }) do fields[#fields + 1] = field .. part .. process end
end

-- Reads the seed, every window that the call names, and the current windows of its budgets, if any, by one HMGET.
local function load_books(key, call, now)
  local wanted, starts = { fields = { 'seed' }, books = {} }, {}
  for _, row in ipairs(call.reports) do want_book(wanted, row.field, call.process) end
  for i, row in ipairs(call.budgets) do
    starts[i] = pick(row, now)
    if starts[i] then want_book(wanted, row.budget .. ':' .. text(starts[i]), call.process) end
  end
  local found = fetch(key, wanted.fields)
  for _, book in pairs(wanted.books) do
    book.names, book.was = {}, {}
    for i = 1, 7 do
      local at = book.first + i - 1
      book.names[i], book.was[i] = wanted.fields[at], found[at]
      book.values[i] = stored(found[at], wanted.fields[at])
    end
    book.is_new = not book.was[6]
  end
  return found[1] or '', wanted.books, starts
end

local function sum(a, b)
  return math.min(MAX_SUM, a + b)
end

-- Seeds end in a number. A seed that replaces another one has a larger number.
local function age_of(seed)
  return tonumber(string.match(seed, '%-(%d+)$') or '0')
end

-- Restarts the budgets under another seed, from what they have spent. Each process then adds only what no answer has acknowledged.
local function renew(key, seed)
  if redis.call('HLEN', key) > MAX_BUDGET_FIELDS or is_oversize(key, MAX_BUDGET_BYTES) then refuse('the budgets are too large') end
  local flat = redis.call('HGETALL', key)
  redis.call('HSET', key, 'seed', seed)
  for i = 1, #flat, 2 do
    local field, part = string.match(flat[i], '^([^:]+:[^:]+:[^:]+:[^:]+):(.+)$')
    if part == 's' then redis.call('HSET', key, field .. ':B', flat[i + 1]) end
    if part and string.sub(part, 1, 2) == 'c:' then redis.call('HDEL', key, flat[i]) end
  end
end

-- Returns whether other processes have spent less than this one knows: Redis has gone back to an older state.
-- `is_reseeded`: the budgets have restarted since the last answer to this process.
local function report(book, row, call, is_reseeded)
  local v = book.values
  if book.is_new then
    book.is_new = false
    v[6] = call.wasAway and row.acknowledged or row.base
    if is_reseeded then
      local base = math.max(v[3], row.seen)
      v[1] = sum(v[1], base - v[3])
      v[3] = base
      v[6] = row.acknowledged
    end
    book.has_spent = true
  end
  local is_whole = not is_reseeded and row.spent >= v[6] -- not after the process has forgotten an old window
  local went_back = is_whole and v[1] - v[6] < row.seen - row.acknowledged
  v[4] = math.max(0, v[4] - v[7])
  v[7] = 0
  v[2] = math.max(0, sum(v[2] - v[5], row.held))
  v[5] = row.held
  if row.spent > v[6] then
    v[1] = sum(v[1], row.spent - v[6])
    v[6] = row.spent
  end
  return went_back
end

local function save_books(key, books)
  local set, deleted = {}, {}
  for _, book in pairs(books) do
    for i = 1, 7 do
      local value = book.values[i]
      local is_kept = value ~= 0 or i == 1 or (i == 6 and book.has_spent)
      local is_known = book.was[i] and tonumber(book.was[i]) == value
      if is_kept and not is_known and (book.was[i] or value ~= 0 or i == 6) then
        set[#set + 1] = book.names[i]
        set[#set + 1] = text(value)
      elseif not is_kept and book.was[i] and i ~= 6 then
        deleted[#deleted + 1] = book.names[i]
      end
    end
  end
  if #set > 0 then redis.call('HSET', key, unpack(set)) end
  if #deleted > 0 then redis.call('HDEL', key, unpack(deleted)) end
end

local function budget_rest(row, book)
  local v = book.values
  return row.amount - v[1] - v[4] - v[2]
end

local function budget_short(row, book)
  local v = book.values
  if row.need <= 0 or budget_rest(row, book) >= row.need then return 0 end
  return row.amount - v[1] - v[4] < row.need and 1 or 2
end

local function budget_grant(row, rest, live)
  local granted = math.max(0, math.min(rest, math.max(row.need, row.ask)))
  local free = rest - granted
  if free < math.floor(row.amount / LAST_BUDGET_PART) then return granted end
  return granted + math.max(0, math.min(row.want, math.floor(free / FLOAT_PART), math.floor(free / (FLOAT_SHARE * live))))
end
