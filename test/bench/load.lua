-- wrk script: the same body with each of the given keys in turn; prints one line of JSON at the end.
--   wrk ... -s load.lua URL -- BODY_FILE KEYS_FILE [PAUSE_MS]
local requests, at = {}, 0

function init(args)
  local file = assert(io.open(args[1], 'rb'))
  local body = file:read('*a')
  file:close()
  for key in io.lines(args[2]) do
    requests[#requests + 1] = wrk.format('POST', nil, { ['content-type'] = 'application/json', authorization = 'Bearer ' .. key }, body)
  end
  if args[3] then delay = function() return tonumber(args[3]) end end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"broken":%d,"refused":%d}\n', summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.timeout, e.status))
end
