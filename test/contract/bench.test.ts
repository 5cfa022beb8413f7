/** The pure parts of `make bench` and `make soak`: each statement of a report must follow from the measurements. */
import { describe, expect, test } from 'vitest'
import { CELLS, turnOrder, type Cell, type ContenderName } from '../bench/cells.ts'
import { ANSWER_BYTES, chatAnswer, chatBody, PLAIN_MODEL, STREAM_MODEL } from '../bench/fixtures.ts'
import type { Machine } from '../bench/machine.ts'
import type { CellResult, Sample } from '../bench/measure.ts'
import { readOptions } from '../bench/options.ts'
import { parseCpuMs, parseCpuModel, parseMemory } from '../bench/proc.ts'
import { ownCosts } from '../bench/profile.ts'
import { invalidCell, isTooSlow, renderPropagation, renderReport, renderSoak, verdicts, type Report } from '../bench/report.ts'
import { quantile, ratios, slope, spread, variation } from '../bench/statistics.ts'
import { parseResult, wrkCommand } from '../bench/wrk.ts'

describe('statistics', () => {
  test('a spread has the least value, the median and the largest value, and is undefined without values', () => {
    expect(spread([5, 1, 2])).toEqual({ min: 1, median: 2, max: 5 })
    expect(spread([1, 2])).toEqual({ min: 1, median: 1.5, max: 2 })
    expect(spread([])).toBeUndefined()
  })

  test('a quantile is interpolated between neighbouring values', () => {
    const values = [4, 1, 3, 2]
    expect([0, 0.5, 1].map((share) => quantile(values, share))).toEqual([1, 2.5, 4])
    expect(quantile([], 0.5)).toBeNaN()
    expect(values).toEqual([4, 1, 3, 2])
  })

  test('ratios pair measurements of the same round, and leave out incomplete rounds', () => {
    expect(ratios([2, undefined, 9, 8], [1, 1, 3, 0])).toEqual([2, 3])
  })

  test('variation is the largest value less the least value, divided by the median', () => {
    expect(variation([90, 100, 110])).toBeCloseTo(0.2)
    expect([variation([]), variation([7])]).toEqual([0, 0])
  })

  test('a slope is the slope of the least-squares line, in y per x', () => {
    const points = [0, 1, 2, 3].map((x) => [x, 5 + 2 * x] as const)
    expect(slope(points)).toBeCloseTo(2)
    expect([slope([]), slope([[1, 9]])]).toEqual([0, 0])
  })
})

describe('/proc', () => {
  test('CPU time is utime + stime, whatever the program is called', () => {
    const fields = 'S 1 1 1 0 -1 4194304 900 0 0 0 123 45 7 8 20 0 11 0 5000 1000000 300'
    expect(parseCpuMs(`42 (node) ${fields}`)).toBe(1680)
    expect(parseCpuMs(`42 (a) b) 9 9) ${fields}`)).toBe(1680)
    expect(() => parseCpuMs('')).toThrow('this is no /proc/<pid>/stat')
  })

  test('memory is reported in MB of 10^6 bytes', () => {
    expect(parseMemory('Name:\tnode\nVmHWM:\t  250000 kB\nVmRSS:\t  125000 kB\n')).toEqual({ rssMb: 128, peakRssMb: 256 })
    expect(parseMemory('Name:\tkthread\n')).toEqual({ rssMb: 0, peakRssMb: 0 })
  })

  test('the CPU has the model name that /proc/cpuinfo reports', () => {
    expect(parseCpuModel('processor\t: 0\nmodel name\t: AMD EPYC\nmodel name\t: AMD EPYC\n')).toBe('AMD EPYC')
    expect(parseCpuModel('')).toBe('unknown')
  })
})

describe('options', () => {
  test('flags win over the environment, and quick makes everything short', () => {
    const options = readOptions(['--rounds', '3', '--part', '1.5k-c32, propagation'], { BENCH_ROUNDS: '9', BENCH_SECONDS: '4' })
    expect(options).toMatchObject({ rounds: 3, seconds: 4, warmupSeconds: 2, propagationKeys: 200, profile: false })
    expect(options).toMatchObject({ storm: undefined, stormStopped: undefined, issuing: undefined })
    expect(options === 'help' ? [] : options.cells.map(({ name }) => name)).toEqual(['1.5k-c32'])
    expect(readOptions([], { BENCH_QUICK: '1' })).toMatchObject({
      rounds: 2,
      seconds: 1,
      warmupSeconds: 1,
      propagationKeys: 20,
      cells: CELLS,
      storm: { storms: 1, keys: 200 },
      issuing: { keys: [100], rounds: 1 },
    })
    expect(readOptions(['--part', '401-c32'], { BENCH_QUICK: '0' })).toMatchObject({ rounds: 5, propagationKeys: 0 })
    expect(readOptions(['--help'], {})).toBe('help')
  })

  test('PART picks parts of the operator, with the numbers that are promised for them', () => {
    const options = readOptions([], { PART: 'storm-stopped issuing', BENCH_ISSUING_KEYS: '50 70', BENCH_STORM_KEYS: '500' })
    expect(options).toMatchObject({ cells: [], propagationKeys: 0, storm: undefined, issuing: { keys: [50, 70], rounds: 2 } })
    expect(options).toMatchObject({ stormStopped: { storms: 5, keys: 500, probes: 40 } })
    expect(readOptions(['--part', 'gateway'], {})).toMatchObject({ cells: CELLS, propagationKeys: 0 })
    expect(readOptions([], {})).toMatchObject({ storm: { storms: 5, keys: 2000 }, issuing: { keys: [1000, 5000] } })
    expect(readOptions(['--spend-seconds', '90'], { PART: 'spend' })).toMatchObject({ cells: [], spend: { keys: 10_000, seconds: 90 } })
    expect(readOptions(['--part', 'storm'], {})).toMatchObject({ spend: undefined })
  })

  test('a wrong option is named, with the remedy', () => {
    expect(() => readOptions(['--part', '1k'], {})).toThrow('part: there is no "1k"; choose of gateway, propagation, storm')
    expect(() => readOptions([], { BENCH_ISSUING_KEYS: '1000 many' })).toThrow('issuing-keys: "many" is no whole number')
    expect(() => readOptions([], { BENCH_SECONDS: '2.5' })).toThrow('seconds: "2.5" is no whole number')
    expect(() => readOptions(['--fast'], {})).toThrow('--fast')
  })
})

describe('load', () => {
  test('bodies and answers have exactly the size that the report names', () => {
    for (const bytes of [1_500, 20_000]) expect(Buffer.byteLength(chatBody(bytes, false))).toBe(bytes)
    expect(Buffer.byteLength(chatAnswer())).toBe(ANSWER_BYTES)
    expect(JSON.parse(chatBody(1_500, true))).toMatchObject({ model: STREAM_MODEL, stream: true })
    expect(JSON.parse(chatAnswer())).toMatchObject({ model: PLAIN_MODEL })
  })

  test('contenders take turns, in reverse order in every second round', () => {
    expect([0, 1, 2].map((round) => turnOrder(['a', 'b', 'c'], round).join(''))).toEqual(['abc', 'cba', 'abc'])
  })

  test('the output of wrk is parsed into ms and s', () => {
    const output =
      'Running 2s test\nRESULT {"requests":100,"microseconds":2000000,"p50":1500,"p99":9000,"broken":1,"refused":2}\nRequests/sec: 50\n'
    expect(parseResult(output)).toEqual({ requests: 100, seconds: 2, p50Ms: 1.5, p99Ms: 9, broken: 1, refused: 2 })
    expect(() => parseResult('unable to connect')).toThrow('unable to connect')
  })

  test('a load is pinned only where a core is named', () => {
    const load = { url: 'http://h/', connections: 4, seconds: 3, bodyFile: 'b', keysFile: 'k', pauseMs: 20 }
    expect(wrkCommand(load, 1).slice(0, 4)).toEqual(['taskset', '-c', '1', 'wrk'])
    expect(wrkCommand(load)[0]).toBe('wrk')
    expect(wrkCommand(load).slice(-4)).toEqual(['--', 'b', 'k', '20'])
  })
})

function sample(change: Partial<Sample>): Sample {
  return { requests: 1000, requestsPerSecond: 500, cpuMicros: 50, p50Ms: 1, p99Ms: 2, eventsPerSecond: 0, errors: 0, ...change }
}

type Series = Partial<Record<ContenderName, readonly Partial<Sample>[]>>

function cellResult(name: string, series: Series): CellResult {
  const cell = CELLS.find((one) => one.name === name) as Cell
  const entries = Object.entries(series) as [ContenderName, readonly Partial<Sample>[]][]
  return { cell, samples: new Map(entries.map(([contender, all]) => [contender, all.map(sample)])) }
}

const STEADY = [{ cpuMicros: undefined }, { cpuMicros: undefined }]

function report(cells: readonly CellResult[], machine: Partial<Machine> = {}): Report {
  const here = { date: '2026-11-21', commit: 'abc', cpu: 'CPU', cores: 2, kernel: '6.1', versions: { node: 'v24' }, loadAverage: 0.5 }
  const memory = [{ name: 'gateway' as const, idle: { rssMb: 100, peakRssMb: 110 }, after: { rssMb: 150, peakRssMb: 160 } }]
  return { machine: { ...here, ...machine }, command: 'bench', result: { cells, memory, redisCommandsPerRequest: 0.001 } }
}

describe('report', () => {
  const good = cellResult('1.5k-c32', {
    direct: STEADY,
    bare: [{ cpuMicros: 40 }, { cpuMicros: 50 }],
    gateway: [
      { cpuMicros: 48, p50Ms: 1.25 },
      { cpuMicros: 60, p50Ms: 1.25 },
    ],
    nginx: [{ cpuMicros: 12 }, { cpuMicros: 20 }],
  })

  test('a ratio within its aim is met, one above it is missed', () => {
    const [met] = verdicts(report([good]))
    expect(met).toEqual({ text: 'CPU per request, 1.5k-c32: gateway / bare = 1.20 / 1.20 / 1.20, aim <= 1.35: met', isMet: true })
    const dear = cellResult('1.5k-c32', { direct: STEADY, bare: [{ cpuMicros: 40 }], gateway: [{ cpuMicros: 60 }] })
    expect(verdicts(report([dear]))[0]).toMatchObject({ isMet: false, text: expect.stringContaining('MISSED') })
  })

  test('a refusal is compared with a forwarded request of the same round', () => {
    const refused = cellResult('401-c32', { gateway: [{ cpuMicros: 24 }, { cpuMicros: 30 }] })
    expect(verdicts(report([good, refused])).at(-1)).toEqual({
      text: 'CPU of a 401 / of a forwarded request, gateway = 0.50 / 0.50 / 0.50, aim <= 0.6: met',
      isMet: true,
    })
  })

  test('results of a busy machine are printed and not valid', () => {
    const text = renderReport(report([good], { loadAverage: 2.5 }))
    expect(text).toContain('gateway / bare = 1.20 / 1.20 / 1.20, aim <= 1.35: not valid')
    expect(text).toContain('NOT VALID:\n  the load average before the start was 2.50, above 2')
    expect(verdicts(report([good], { loadAverage: 2.5 })).map(({ isMet }) => isMet)).not.toContain(true)
    expect(verdicts(report([good], { cores: 1 })).map(({ isMet }) => isMet)).not.toContain(true)
  })

  test('a direct run that varies by more than 15 % makes its cell invalid', () => {
    const shaky = cellResult('1.5k-c32', {
      direct: [{ requestsPerSecond: 100 }, { requestsPerSecond: 130 }],
      bare: [{}, {}],
      gateway: [{}, {}],
    })
    expect(invalidCell(shaky)).toBe('not valid: 1.5k-c32 direct varied by 26 %, more than 15 %')
    expect(verdicts(report([shaky]))[0]?.isMet).toBeUndefined()
  })

  test('any error voids its cell: the report has no ratio for the cell', () => {
    const failed = cellResult('1.5k-c32', { direct: STEADY, bare: [{}, {}], gateway: [{}, { errors: 3 }] })
    expect(verdicts(report([failed]))[0]).toEqual({
      text: 'CPU per request, 1.5k-c32: gateway / bare: void: errors (gateway 3)',
      isMet: undefined,
    })
    expect(renderReport(report([failed]))).toContain('voided     1.5k-c32')
  })

  test('the report names the machine, the versions and the missing measurements, and latency as through minus direct', () => {
    const text = renderReport(report([good]))
    for (const part of [
      'date       2026-11-21',
      'commit     abc',
      'CPU, 2 cores, Linux 6.1',
      'node v24',
      'voided     no cell',
      'not measured here:',
    ]) {
      expect(text).toContain(part)
    }
    expect(text).toMatch(/gateway +48\.0 \/ 54\.0 \/ 60\.0 +500 \/ 500 \/ 500 .* 0\.250 \/ 0\.00/)
    expect(text).toContain('gateway  RSS idle 100 MB, after 150 MB, peak 160 MB')
  })

  test('propagation and soak are tables of the measurements', () => {
    const rows = renderPropagation([{ change: 'revoke', times: [10, 30, 20] }]).split('\n')
    expect(rows.map((row) => row.trim().split(/\s{2,}/))).toEqual([
      ['change', 'n', 'p50 ms', 'p99 ms', 'max ms'],
      ['revoke', '3', '20', '30', '30', 'aim met'],
    ])
    expect(renderPropagation([{ change: 'apply', times: [10, 900] }])).toMatch(/ met$/)
    const late = { change: 'apply', times: [10, 1001] }
    expect(renderPropagation([late])).toMatch(/TOO SLOW$/)
    expect(isTooSlow(late)).toBe(true)
    const points = [0, 60, 120, 180, 240].map((seconds) => [seconds, 200 + seconds / 60] as const)
    const load = { requests: 600, seconds: 60, p50Ms: 1, p99Ms: 2, broken: 0, refused: 4 }
    const soak = renderSoak([{ name: 'gateway-0', points }], [load])
    expect(soak).toMatch(/gateway-0 +200\.0 +204\.0 +204\.0 +1\.0/)
    expect(soak).toMatch(/gateway 0 +10 +1\.00 +2\.00 +0 +4/)
  })
})

test('a profile is printed as shares of the time that was not idle', () => {
  const frame = (functionName: string) => ({ functionName, url: `${functionName}.js`, lineNumber: 0, columnNumber: 0 })
  const nodes = ['(idle)', 'a', 'b'].map((name, id) => ({ id, callFrame: frame(name), hitCount: 0 }))
  const costs = ownCosts({ nodes, samples: [0, 1, 2, 1], timeDeltas: [500, 30, 25, 45] }, ({ url }) => url)
  expect(costs).toEqual([
    { share: 0.75, name: 'a', at: 'a.js' },
    { share: 0.25, name: 'b', at: 'b.js' },
  ])
})
