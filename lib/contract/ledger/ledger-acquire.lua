-- A call of a gateway. `gateway/limits/memory-ledger.ts` is the same in TypeScript; a test compares the replies.
--
-- All reads and checks precede the first write, so a refused call changes nothing. A constant bounds every loop, since a gateway under an
-- attacker's control may store anything. Numbers are written by `text`, never by `..`, which rounds large ones.

-- Numbers of processes.

-- Drops a damaged key: every process then gets 'lost' for its calls, and books its admissions again.
local function load_process(key, process)
  local values = fetch(key, { 'now', 'q:' .. process, 'b:' .. process, 'skew' })
  for i = 1, 4 do
    if values[i] and not integer(values[i], i == 4 and -MAX or 0) then
      redis.call('UNLINK', key)
      return { false, false, false, false }
    end
  end
  return values
end

-- The time of a subject: the clock within the bounds that the process knows, else as far from the clock as at the last call. A clock that has
-- jumped by at most MAX_SKEW_MS moves no window.
local function bounded_time(call, clock, skew)
  local time = clock - skew
  if call.latestMs < MAX then time = math.max(call.earliestMs, math.min(clock, call.latestMs)) end
  return math.abs(clock - time) > MAX_SKEW_MS and clock or time
end

local function collect_processes(key)
  if redis.call('HLEN', key) <= 3 * MAX_PROCESSES then return end
  redis.call('UNLINK', key)
end

local function save_skew(key, skew, known)
  local kept = math.abs(skew) < MIN_SKEW_MS and 0 or skew
  if kept ~= known then redis.call('HSET', key, 'skew', text(kept)) end
end

local function save_process(key, call, now, seen)
  local q, b = 'q:' .. call.process, 'b:' .. call.process
  if call.batch.number > 0 and call.is_new_batch then
    redis.call('HSET', key, 'now', text(now), q, text(call.number), b, text(call.batch.number))
  else
    redis.call('HSET', key, 'now', text(now), q, text(call.number))
  end
  if math.floor(now / 60000) ~= math.floor(seen / 60000) then redis.call('PEXPIRE', key, PROCESS_TTL_MS) end
  if call.is_new_process then collect_processes(key) end
end

local function rate_answers(keys, rings, call, now, is_short, out)
  for _, row in ipairs(call.rates) do
    local ring = rings[row.kind]
    local free = row.limit - ring.total
    local wait = 0
    if row.need > 0 and free < row.need then wait = wait_ms(keys[1], ring, row, now) end
    local grant = 0
    if not is_short then
      grant = math.max(0, math.min(free, math.max(row.need, row.ask, math.min(row.want, math.floor(free / (2 * call.live))))))
    end
    local slot = slot_after(now, row.leaseMs)
    book(ring, slot, grant, now)
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = grant, slot, free - grant, reset_ms(ring, now), wait
  end
end

local function permit_answer(call, permits, is_short, out)
  if not permits then return 0 end
  local grant = is_short and 0 or permit_grant(call.permits, permits.free, call.live)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3] = grant, permits.free - grant, permits_short(call, permits) and 1000 or 0
  return grant
end

local function book_of(books, row, start)
  return books[row.budget .. ':' .. text(start)]
end

local function budget_answers(call, books, starts, is_short, out)
  for i, row in ipairs(call.budgets) do
    local book = book_of(books, row, starts[i])
    local short = budget_short(row, book)
    local grant = is_short and 0 or budget_grant(row, budget_rest(row, book), call.live)
    local v = book.values
    v[2] = v[2] + grant
    v[5] = v[5] + grant
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5], out[n + 6] = starts[i], grant, v[1], v[4], v[2], short
  end
end

local function any_short(rings, permits, call, books, starts)
  for _, row in ipairs(call.rates) do
    if row.need > 0 and row.limit - rings[row.kind].total < row.need then return true end
  end
  if permits_short(call, permits) then return true end
  for i, row in ipairs(call.budgets) do
    if budget_short(row, book_of(books, row, starts[i])) ~= 0 then return true end
  end
  return false
end

-- Names a subject with new spend for the operator, which reads the named subjects first. A damaged set must not fail the call.
local function name_spender(key, subject)
  redis.pcall('SADD', key, subject)
end

-- KEYS: rate, conc, budget, proc; the set of subjects with new spend; balance, for a call with one. ARGV: a call as JSON. Returns what
-- `ledger-wire.ts` decodes: integers, which Redis keeps exact up to 2^53.
local function acquire_(keys, args)
  local call = call_of(args)
  local head = load_process(keys[4], call.process)
  local clock, skew = time_ms(), stored(head[4], 'skew')
  local time = bounded_time(call, clock, skew)
  local seen = stored(head[1], 'now')
  local collapse = seen - time > MAX_SKEW_MS
  local now = collapse and clock or math.max(time, seen)
  local last, last_batch = stored(head[2], 'q'), stored(head[3], 'b')
  if call.number <= last then return { 'stale', now, last } end
  if last < call.acknowledged then return { 'lost', now, last, last_batch } end
  call.is_new_process = not head[2]
  call.is_new_batch = call.batch.number > last_batch
  if not call.is_new_batch then call.batch = NO_BATCH end

  local rings = load_rings(keys[1], call, now, collapse, seen)
  apply_rates(rings, call, now)
  local permits = load_permits(keys[2], call, now)
  local seed, books, starts = load_books(keys[3], call, now)
  local balance = load_balance(keys[6], call)
  local is_unseeded = seed == '' and #call.reports + #call.budgets > 0
  local spent, is_spent, is_outside = {}, false, false
  local went_back, newest = false, age_of(seed)
  if not is_unseeded then
    for i, row in ipairs(call.reports) do
      local book = books[row.field]
      local before = book.values[1]
      local is_reseeded = row.seed ~= '' and row.seed ~= seed
      went_back = report(book, row, call, is_reseeded) or (is_reseeded and age_of(seed) <= age_of(row.seed)) or went_back
      newest = math.max(newest, age_of(row.seed))
      spent[i] = book.values[1]
      is_spent = is_spent or spent[i] > before
    end
    for i = 1, #call.budgets do is_outside = is_outside or not starts[i] end
  end

  if went_back then
    renew(keys[3], call.process .. ':' .. text(call.number) .. '-' .. text(newest + 1))
    return { 'lost', now, last, last_batch }
  end

  local out, grant = nil, 0
  if is_unseeded or is_unready(call.balance, balance) then
    out = { 'unseeded', now }
  elseif is_outside then
    out = { 'window', now }
  else
    local is_short = any_short(rings, permits, call, books, starts) or balance_short(call.balance, balance) ~= 0
    out = { is_short and 'short' or 'granted', now, seed }
    for i = 1, #spent do out[#out + 1] = spent[i] end
    grant = permit_answer(call, permits, is_short, out)
    rate_answers(keys, rings, call, now, is_short, out)
    budget_answers(call, books, starts, is_short, out)
    balance_answer(call, balance, is_short, out)
  end

  save_process(keys[4], call, now, seen)
  save_skew(keys[4], clock - now, skew)
  save_rings(keys[1], rings)
  save_permits(keys[2], call, permits, grant, now)
  if not is_unseeded then save_books(keys[3], books) end
  save_balance(keys[6], balance)
  if is_spent then name_spender(keys[5], call.subject) end
  return out
end
