-- Usage of accounts: gateways add what they have counted, and the operator takes it. A row is one text of all its counts, since a field for
-- each count would make the hash eleven times as large.

local COUNTED_TTL_MS = 172800000 -- a process that resends a report after two days without any other is not expected

local function check_usage(row)
  check_word(row.key, 'key')
  check_word(row.model, 'model')
  check_table(row.counts, 'counts')
  if #row.counts ~= USAGE_COLUMNS then refuse('wrong number of counts') end
  for i = 1, USAGE_COLUMNS do check_number(row.counts[i], 'count', 0) end
end

local function report_of(args)
  if #args ~= 1 or #args[1] > MAX_CALL_BYTES then refuse('the report is missing or too long') end
  local is_json, report = pcall(cjson.decode, args[1])
  if not is_json or type(report) ~= 'table' then refuse('the report is not a JSON object') end
  check_word(report.account, 'account')
  check_word(report.process, 'process')
  check_number(report.number, 'number', 1)
  check_number(report.ageMs, 'ageMs', 0)
  check_rows(report.rows, 'rows', MAX_REPORTED_ROWS, check_usage)
  return report
end

-- Counts in a text; a damaged text counts as none.
local function counts_in(value)
  local counts = {}
  for word in string.gmatch(value or '', '%S+') do counts[#counts + 1] = integer(word, 0) end
  if #counts == USAGE_COLUMNS then return counts end
  for i = 1, USAGE_COLUMNS do counts[i] = 0 end
  for i = USAGE_COLUMNS + 1, #counts do counts[i] = nil end
  return counts
end

local function counts_text(counts)
  local words = {}
  for i = 1, USAGE_COLUMNS do words[i] = text(counts[i]) end
  return table.concat(words, ' ')
end

-- KEYS: usage, counted; the set of accounts with usage. ARGV: a report as JSON. Returns 'ok', also for a report that has counted already.
local function count_(keys, args)
  local report = report_of(args)
  local process = 'b:' .. report.process
  if (integer(fetch(keys[2], { process })[1] or '0', 0) or 0) >= report.number then return 'ok' end
  local day = text(math.floor((time_ms() - report.ageMs) / DAY_MS))
  local fields = { day .. '\n\n' } -- the row of all that finds no room
  for i, row in ipairs(report.rows) do fields[i + 1] = day .. '\n' .. row.key .. '\n' .. row.model end
  local values = fetch(keys[1], fields)
  local room = MAX_WAITING_ROWS - redis.call('HLEN', keys[1])
  local sums = {}
  for i, row in ipairs(report.rows) do
    local at = i + 1
    if not values[at] and not sums[fields[at]] then
      if room > 0 then room = room - 1 else at = 1 end
    end
    local field = fields[at]
    sums[field] = sums[field] or counts_in(values[at])
    for column = 1, USAGE_COLUMNS do sums[field][column] = math.min(MAX_SUM, sums[field][column] + row.counts[column]) end
  end
  for field, counts in pairs(sums) do redis.call('HSET', keys[1], field, counts_text(counts)) end
  redis.call('HSET', keys[2], process, text(report.number))
  redis.call('PEXPIRE', keys[2], COUNTED_TTL_MS)
  redis.call('SADD', keys[3], report.account)
  return 'ok'
end

-- Whether the functions have not written a key: gateways may write fields of any number and length, and the operator reads them as a whole.
local function is_forged(key)
  local kind, bytes = size_of(key, MAX_WAITING_ROWS + MAX_REPORTED_ROWS)
  if kind == 'none' then return false end
  return kind ~= 'hash' or bytes < 0 or redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0') > MAX_USAGE_BYTES
end

-- KEYS: usage, taken, takes. ARGV: number of the last take in the books. Returns { 'none', now }; { 'lost', now } after a loss of data, which
-- drops the rest; or { 'rows', now, number }, then field and counts of each row. What was taken stays until its number is in the books.
local function take_(keys, args)
  local known = integer(args[1], 0) or refuse('wrong arguments')
  local usage, taken, takes = keys[1], keys[2], keys[3]
  local now = text(time_ms())
  local last = integer(short_value(takes, 'n', MAX_NUMBER_BYTES) or '', 0) or 0
  if (last ~= known and last ~= known + 1) or is_forged(usage) or is_forged(taken) then
    redis.call('UNLINK', usage, taken)
    redis.call('HSET', takes, 'n', text(known))
    return { 'lost', now }
  end
  if last == known then
    redis.call('UNLINK', taken)
    if redis.call('EXISTS', usage) == 0 then return { 'none', now } end
    redis.call('RENAME', usage, taken)
    redis.call('HSET', takes, 'n', text(known + 1))
  end
  local rows = redis.call('HGETALL', taken)
  local out = { 'rows', now, text(known + 1) }
  for i = 1, #rows do out[#out + 1] = rows[i] end
  return out
end
