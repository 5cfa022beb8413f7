-- Rolling windows in a hash. A ring is { kind, total, oldest, newest, slots, changed }; a slot is loaded before it is used.

local function last_slot(now)
  return slot_after(now, LONGEST_LEASE_MS)
end

-- Adds a slot to those to fetch for both rings at once. From now on it is in `slots`, with 0 until it is loaded.
local function want(wanted, ring, slot)
  if ring.slots[slot] then return end
  ring.slots[slot] = 0
  local at = #wanted.fields + 1
  wanted.fields[at] = ring.kind .. ':' .. text(slot)
  wanted.rings[at] = ring
  wanted.slots[at] = slot
end

local function nothing_wanted()
  return { fields = {}, rings = {}, slots = {} }
end

-- Returns false for a slot with an invalid amount. The first value is at `from`.
local function fill(wanted, values, from)
  for at = 1, #wanted.fields do
    local value = values[from + at - 1]
    local amount = value and integer(value, 0) or 0
    if value and amount == 0 then return false end
    wanted.rings[at].slots[wanted.slots[at]] = amount
  end
  return true
end

local function load_slots(key, wanted)
  return #wanted.fields == 0 or fill(wanted, fetch(key, wanted.fields), 1)
end

local function empty_ring(kind, present)
  return { kind = kind, total = 0, oldest = present + 1, newest = 0, slots = {} }
end

local function set_slot(ring, slot, amount)
  ring.total = ring.total + amount - ring.slots[slot]
  ring.slots[slot] = amount
  ring.changed = ring.changed or {}
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

-- Whether a ring is valid. A damaged ring is dropped as a whole.
local function sane(ring, present)
  return ring.total and ring.oldest and ring.newest and ring.total >= 0
    and (ring.total == 0 or (ring.newest >= ring.oldest and ring.newest - ring.oldest <= MAX_SLOTS and ring.newest - present <= MAX_SLOTS))
end

-- Adds the slots that a call names.
local function want_named(wanted, rings, call, now)
  local last = last_slot(now)
  local batch = call.batch
  for _, row in ipairs(batch.refunds) do if row.slot <= last then want(wanted, rings[row.kind], row.slot) end end
  for _, row in ipairs(batch.bookings) do want(wanted, rings[row.kind], math.min(row.slot, last)) end
  for _, row in ipairs(call.rates) do want(wanted, rings[row.kind], slot_after(now, row.leaseMs)) end
  for _, kind in ipairs(KINDS) do
    if batch.debts[kind] > 0 then want(wanted, rings[kind], slot_after(now, 0)) end
  end
end

-- Adds the ended slots of one ring; all slots, if the clock was corrected.
local function want_over(wanted, ring, now, present, collapse)
  if ring.total > 0 then
    for slot = ring.oldest, collapse and ring.newest or math.min(present, ring.newest) do want(wanted, ring, slot) end
  end
  if collapse then want(wanted, ring, last_slot(now)) end
end

local function sweep(ring, present)
  if present < ring.oldest then return end
  if ring.total > 0 then
    for slot = ring.oldest, math.min(present, ring.newest) do
      if ring.slots[slot] > 0 then set_slot(ring, slot, 0) end
    end
    if present >= ring.newest then ring.total = 0 end -- whatever a forged total is
  end
  ring.oldest = present + 1
end

local function collapse_into(ring, last, present)
  local total = ring.total
  for slot = ring.oldest, ring.newest do
    if total > 0 and ring.slots[slot] > 0 then set_slot(ring, slot, 0) end
  end
  if ring.oldest > present + 1 then ring.is_repaired = true end -- also an empty ring: it would ignore bookings before its old time
  ring.oldest = present + 1
  ring.newest = 0
  ring.total = 0
  if total > 0 then
    set_slot(ring, last, total)
    ring.newest = last
  end
end

local HEADS = { r = { 'rtot', 'rold', 'rnew' }, t = { 'ttot', 'told', 'tnew' } }

local function empty_rings(present)
  return { r = empty_ring('r', present), t = empty_ring('t', present) }
end

-- One HMGET reads the heads of both rings and the slots that the call names; another reads ended slots, usually none.
local function read_rings(key, call, now, present, latest, collapse)
  local rings, wanted = empty_rings(present), nothing_wanted()
  want_named(wanted, rings, call, now)
  local fields = { 'rtot', 'rold', 'rnew', 'ttot', 'told', 'tnew', unpack(wanted.fields) }
  local values = fetch(key, fields)
  local over = nothing_wanted()
  for at, kind in ipairs(KINDS) do
    local ring, head = rings[kind], 3 * at - 2
    if values[head] then
      ring.total, ring.oldest, ring.newest = integer(values[head], 0), integer(values[head + 1], 0), integer(values[head + 2], 0)
      ring.stored_newest = ring.newest
    end
    if not sane(ring, latest) then return nil end
  end
  if not fill(wanted, values, 7) then return nil end
  for _, kind in ipairs(KINDS) do want_over(over, rings[kind], now, present, collapse) end
  return load_slots(key, over) and rings or nil
end

-- Returns nil for a call without rates.
local function load_rings(key, call, now, collapse, seen)
  local batch = call.batch
  if #call.rates + #batch.refunds + #batch.bookings + batch.debts.r + batch.debts.t == 0 and not collapse then return nil end
  local present = math.floor(now / SLOT_MS)
  local latest = math.floor(math.max(now, seen) / SLOT_MS)
  local rings = read_rings(key, call, now, present, latest, collapse)
  if not rings then
    redis.call('UNLINK', key)
    rings = empty_rings(present)
    want_named(nothing_wanted(), rings, call, now)
    return rings
  end
  for _, kind in ipairs(KINDS) do
    if collapse then
      sweep(rings[kind], latest) -- calls without rates have not swept
      collapse_into(rings[kind], last_slot(now), present)
    end
    sweep(rings[kind], present)
  end
  return rings
end

local function save_rings(key, rings)
  if not rings then return end
  local set, deleted, is_longer = {}, {}, false
  for _, kind in ipairs(KINDS) do
    local ring = rings[kind]
    for slot in pairs(ring.changed or {}) do
      local field = kind .. ':' .. text(slot)
      if ring.slots[slot] > 0 then
        set[#set + 1] = field
        set[#set + 1] = text(ring.slots[slot])
      else
        deleted[#deleted + 1] = field
      end
    end
    if ring.changed or ring.is_repaired then
      local heads = HEADS[kind]
      for i, value in ipairs({ ring.total, ring.oldest, ring.newest }) do
        set[#set + 1] = heads[i]
        set[#set + 1] = text(value)
      end
      is_longer = is_longer or ring.is_repaired or ring.newest ~= ring.stored_newest
    end
  end
  if #deleted > 0 then redis.call('HDEL', key, unpack(deleted)) end
  if #set > 0 then redis.call('HSET', key, unpack(set)) end
  if is_longer then redis.call('PEXPIRE', key, RATE_TTL_MS) end
end

local function reset_ms(ring, now)
  if ring.total <= 0 then return 0 end
  return math.max(0, ring.newest * SLOT_MS - now)
end

local function wait_ms(key, ring, row, now)
  if row.need > row.limit then return -1 end
  local missing = ring.total + row.need - row.limit
  local wanted = nothing_wanted()
  local last = math.min(ring.newest, ring.oldest + MAX_SLOTS)
  for slot = ring.oldest, last do want(wanted, ring, slot) end
  if not load_slots(key, wanted) then return WINDOW_MS end -- found and dropped when that slot ends
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
  if not rings then return end
  for _, row in ipairs(call.batch.refunds) do
    local ring = rings[row.kind]
    if ring.slots[row.slot] then refund(ring, row.slot, row.amount) end
  end
  for _, row in ipairs(call.batch.bookings) do book(rings[row.kind], row.slot, row.amount, now) end
  for _, kind in ipairs(KINDS) do
    if call.batch.debts[kind] > 0 then book(rings[kind], slot_after(now, 0), call.batch.debts[kind], now) end
  end
end
