/** Lua of the ledger: rolling windows in a hash, and usage counters. Needs `CALL_LUA`. */
export const RATES_LUA = `
-- Rolling windows. A ring is { kind, total, oldest, newest, slots, changed }; a slot is loaded before it is used.

local function last_slot(now)
  return slot_after(now, LONGEST_LEASE_MS)
end

local function load_slots(key, ring, wanted)
  local fields, slots = {}, {}
  for slot in pairs(wanted) do
    if ring.slots[slot] == nil then
      slots[#slots + 1] = slot
      fields[#fields + 1] = ring.kind .. ':' .. text(slot)
    end
  end
  if #fields == 0 then return true end
  for i, value in ipairs(fetch(key, fields)) do
    local amount = value and integer(value, 0) or 0
    if value and amount == 0 then return false end
    ring.slots[slots[i]] = amount
  end
  return true
end

local function empty_ring(kind, present)
  return { kind = kind, total = 0, oldest = present + 1, newest = 0, slots = {}, changed = {} }
end

local function set_slot(ring, slot, amount)
  ring.total = ring.total + amount - ring.slots[slot]
  ring.slots[slot] = amount
  ring.changed[slot] = true
end

local function book(ring, slot, amount, now)
  local reached = math.min(slot, last_slot(now))
  if amount <= 0 or reached < ring.oldest then return end
  set_slot(ring, reached, ring.slots[reached] + amount)
  ring.newest = math.max(ring.newest, reached)
end

local function refund(ring, slot, amount)
  local booked = ring.slots[slot]
  if slot >= ring.oldest and booked > 0 then set_slot(ring, slot, math.max(0, booked - amount)) end
end

-- Nothing but what a sane ring can hold. A ring that is damaged is dropped as a whole.
local function sane(ring, present)
  return ring.total and ring.oldest and ring.newest and ring.total >= 0
    and (ring.total == 0 or (ring.newest >= ring.oldest and ring.newest - ring.oldest <= MAX_SLOTS and ring.newest - present <= MAX_SLOTS))
end

-- The slots that this call will touch, so that one HMGET fetches them.
local function touched(call, ring, now, present, collapse)
  local wanted = {}
  local lowest = collapse and present + 1 or ring.oldest
  local function want(slot)
    if slot >= lowest and slot <= last_slot(now) then wanted[slot] = true end
  end
  if ring.total > 0 then
    local last = collapse and ring.newest or math.min(present, ring.newest)
    for slot = ring.oldest, last do wanted[slot] = true end
  end
  for _, row in ipairs(call.refunds) do if row.kind == ring.kind then want(row.slot) end end
  for _, row in ipairs(call.bookings) do if row.kind == ring.kind then want(math.min(row.slot, last_slot(now))) end end
  if call.debts[ring.kind] > 0 then want(slot_after(now, 0)) end
  for _, row in ipairs(call.rates) do if row.kind == ring.kind then want(slot_after(now, row.lease)) end end
  if collapse then wanted[last_slot(now)] = true end
  return wanted
end

local function sweep(ring, present)
  if present < ring.oldest then return end
  if ring.total > 0 then
    for slot = ring.oldest, math.min(present, ring.newest) do
      if ring.slots[slot] > 0 then set_slot(ring, slot, 0) end
    end
    if present >= ring.newest then ring.total = 0 end -- whatever a forged total says
  end
  ring.oldest = present + 1
end

local function collapse_into(ring, last, present)
  local total = ring.total
  for slot = ring.oldest, ring.newest do
    if total > 0 and ring.slots[slot] > 0 then set_slot(ring, slot, 0) end
  end
  if ring.oldest > present + 1 then ring.is_repaired = true end -- an empty ring as well: it would ignore what is booked before its old time
  ring.oldest = present + 1
  ring.newest = 0
  ring.total = 0
  if total > 0 then
    set_slot(ring, last, total)
    ring.newest = last
  end
end

local function load_rings(key, call, now, collapse, seen)
  local present = math.floor(now / SLOT_MS)
  local latest = math.floor(math.max(now, seen) / SLOT_MS)
  local heads = fetch(key, { 'rtot', 'rold', 'rnew', 'ttot', 'told', 'tnew' })
  local rings, damaged = {}, false
  for at, kind in ipairs(KINDS) do
    local function head(i) return heads[3 * (at - 1) + i] end
    local ring = empty_ring(kind, present)
    if head(1) then
      ring.total, ring.oldest, ring.newest = integer(head(1), 0), integer(head(2), 0), integer(head(3), 0)
    end
    if not sane(ring, latest) or not load_slots(key, ring, touched(call, ring, now, present, collapse)) then damaged = true end
    rings[kind] = ring
  end
  if damaged then
    redis.call('UNLINK', key)
    for _, kind in ipairs(KINDS) do
      local ring = empty_ring(kind, present)
      load_slots(key, ring, touched(call, ring, now, present, false))
      rings[kind] = ring
    end
    return rings
  end
  for _, kind in ipairs(KINDS) do
    if collapse then collapse_into(rings[kind], last_slot(now), present) end
    sweep(rings[kind], present)
  end
  return rings
end

local function save_rings(key, rings)
  local set, gone = {}, {}
  for _, kind in ipairs(KINDS) do
    local ring = rings[kind]
    local is_changed = ring.is_repaired
    for slot in pairs(ring.changed) do
      is_changed = true
      local field = kind .. ':' .. text(slot)
      if ring.slots[slot] > 0 then
        set[#set + 1] = field
        set[#set + 1] = text(ring.slots[slot])
      else
        gone[#gone + 1] = field
      end
    end
    if is_changed then
      for name, value in pairs({ tot = ring.total, old = ring.oldest, new = ring.newest }) do
        set[#set + 1] = kind .. name
        set[#set + 1] = text(value)
      end
    end
  end
  if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
  if #set > 0 then
    redis.call('HSET', key, unpack(set))
    redis.call('PEXPIRE', key, RATE_TTL_MS)
  end
end

local function reset_ms(ring, now)
  if ring.total <= 0 then return 0 end
  return math.max(0, ring.newest * SLOT_MS - now)
end

local function wait_ms(key, ring, row, now)
  if row.need > row.limit then return -1 end
  local missing = ring.total + row.need - row.limit
  local wanted = {}
  local last = math.min(ring.newest, ring.oldest + MAX_SLOTS)
  for slot = ring.oldest, last do wanted[slot] = true end
  if not load_slots(key, ring, wanted) then return WINDOW_MS end -- found and dropped when that slot ends
  local sum, wait = 0, nil
  for slot = ring.oldest, last do
    sum = sum + ring.slots[slot]
    if not wait and sum >= missing then wait = slot * SLOT_MS - now end
  end
  if sum < ring.total then -- a forged total refuses once
    ring.total = sum
    ring.is_repaired = true
  end
  return wait or reset_ms(ring, now)
end

local function apply_rates(rings, call, now)
  for _, row in ipairs(call.refunds) do
    local ring = rings[row.kind]
    if ring.slots[row.slot] then refund(ring, row.slot, row.amount) end
  end
  for _, row in ipairs(call.bookings) do book(rings[row.kind], row.slot, row.amount, now) end
  for _, kind in ipairs(KINDS) do book(rings[kind], slot_after(now, 0), call.debts[kind], now) end
end

-- Usage counters: one field for each model of a day, seven numbers in it. Nothing about them refuses a call.

local COUNTERS = { 'q', 'i', 'o', 'c', 'm', 'e', 'p' }

local function usage_of(key, model)
  local size = redis.call('HSTRLEN', key, model)
  if size == 0 then return nil end
  if size > MAX_USAGE_BYTES then return {} end
  local values = {}
  for value in string.gmatch(redis.call('HGET', key, model), '%S+') do values[#values + 1] = integer(value, 0) end
  return values
end

local function add_usage(key, row)
  local model = row.model
  local known = usage_of(key, model)
  if not known and redis.call('HLEN', key) >= MAX_USAGE_MODELS then
    model = OTHER_MODELS
    known = usage_of(key, model)
  end
  local sums = {}
  for i, counter in ipairs(COUNTERS) do sums[i] = text(math.min(MAX, row[counter] + (known and known[i] or 0))) end
  redis.call('HSET', key, model, table.concat(sums, ' '))
end

local function count_usage(base, call, now)
  if #call.usage == 0 then return end
  local day = math.floor(now / DAY_MS)
  local key = base .. ':' .. text(day)
  if type(redis.pcall('HLEN', key)) ~= 'number' then return end -- a key of another type
  for _, row in ipairs(call.usage) do add_usage(key, row) end
  redis.call('PEXPIRE', key, text((day + USAGE_DAYS) * DAY_MS - now))
end
`.trim()
