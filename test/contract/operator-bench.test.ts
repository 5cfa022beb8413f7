/** The pure parts of the report of `make bench` about the operator. */
import { describe, expect, test } from 'vitest'
import { inFlight } from '../bench/in-flight.ts'
import { keyringWrites, type IssuingRound } from '../bench/issuing.ts'
import {
  compared,
  isIssuingMissed,
  isStormMissed,
  issuingTotals,
  renderIssuing,
  renderStorms,
  STILL_WORKS_P99,
  stormP99,
} from '../bench/operator-report.ts'
import type { Probe } from '../bench/probe-protocol.ts'
import { increase, readSamples, sumBy } from '../bench/prometheus-text.ts'
import type { StormResult } from '../bench/storm.ts'

describe('metrics as text', () => {
  const text = [
    '# TYPE rest_client_requests_total counter',
    'rest_client_requests_total{code="200",method="PUT",host="10.0.0.1:443"} 7',
    'rest_client_requests_total{code="409",method="PUT",host="10.0.0.1:443"} 2',
    'rest_client_requests_total{code="201",method="POST",host="a\\"} b"} 1e3',
    'rest_client_requests_total_other 5',
    'up 1',
  ].join('\n')

  test('samples are read with their labels, and summed by one of them', () => {
    const samples = readSamples(text, ['rest_client_requests_total', 'up'])
    expect(samples).toHaveLength(4)
    expect(samples.at(-1)).toEqual({ name: 'up', labels: {}, value: 1 })
    expect(sumBy(samples, ({ labels }) => labels['method'])).toEqual(
      new Map([
        ['PUT', 9],
        ['POST', 1000],
      ]),
    )
  })

  test('an increase counts a new name from zero, and leaves out unchanged names', () => {
    const before = new Map([
      ['PUT', 3],
      ['GET', 1],
    ])
    expect(increase(before, new Map([...before, ['PUT', 5], ['POST', 4]]))).toEqual(
      new Map([
        ['PUT', 2],
        ['POST', 4],
      ]),
    )
  })
})

describe('work in flight', () => {
  test('every job is done once, and no more jobs than the bound run at the same time', async () => {
    const done: number[] = []
    let running = 0
    let most = 0
    await inFlight(3, [0, 1, 2, 3, 4, 5, 6], async (item) => {
      most = Math.max(most, ++running)
      await Promise.resolve()
      running -= 1
      done.push(item)
    })
    expect(most).toBe(3)
    expect(done.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6])
  })

  test('the call rejects with the first failure', async () => {
    await expect(inFlight(2, [1, 2, 3], () => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  })
})

function probe(ms: number | null, change: Probe['change'] = 'suspend'): Probe {
  return { change, ms, writeMs: 8 }
}

function storm(change: Partial<StormResult> = {}): StormResult {
  return {
    plan: { name: 'storm-0', keys: 2000, namespaces: 5, probes: 2, idleProbes: 1, hasStoppedGateway: false },
    idle: [probe(12)],
    during: [probe(200), probe(250, 'delete')],
    createdSeconds: 12,
    issuedSeconds: 20,
    describedSeconds: 25,
    operatorRestarts: 0,
    operatorPeakMib: 300,
    summary: { mostWaiting: 2, resolutionMs: 6, questions: 100, admittedAgain: 0 },
    ...change,
  }
}

describe('storms', () => {
  test('a bound prints the limit and the aim, and whether each is met', () => {
    expect(compared(STILL_WORKS_P99, 300)).toBe('must <= 1000 ms: held; aim <= 300 ms: held')
    expect(compared(STILL_WORKS_P99, 301)).toBe('must <= 1000 ms: held; aim <= 300 ms: MISSED')
    expect(compared(STILL_WORKS_P99, Number.NaN)).toBe('must <= 1000 ms: MISSED; aim <= 300 ms: MISSED')
  })

  test('p99 covers all storms together, and a key that was never refused counts with the deadline', () => {
    expect(stormP99([storm(), storm({ during: [probe(900)] })])).toBeCloseTo(887)
    expect(stormP99([storm({ during: [probe(null)] })])).toBe(150_000)
  })

  test('a storm is missed if it is slow or unfinished, or if an ended key works again afterwards', () => {
    expect(isStormMissed([storm()])).toBe(false)
    expect(isStormMissed([storm({ during: [probe(1_001)] })])).toBe(true)
    expect(isStormMissed([storm({ describedSeconds: undefined })])).toBe(true)
    expect(isStormMissed([storm({ summary: { mostWaiting: 1, resolutionMs: 6, questions: 9, admittedAgain: 1 } })])).toBe(true)
    expect(isStormMissed([storm({ during: [] })])).toBe(true)
  })

  test('the report has a row per case beside the case without a storm, and one per storm', () => {
    const cells = renderStorms([storm(), storm({ issuedSeconds: undefined })])
      .split('\n')
      .map((row) => row.trim().split(/\s{2,}/))
    expect(cells).toContainEqual(['no storm', '2', '12', '12', '12', '0', '8'])
    expect(cells).toContainEqual(['storm: deleted', '2', '250', '250', '250', '0', '8'])
    expect(cells).toContainEqual(['storm, all', '4', '225', '250', '250', '0', '8', 'must <= 1000 ms: held; aim <= 300 ms: held'])
    expect(cells).toContainEqual(['storm-0', '2000', '5', '12.0', 'unfinished', '25.0', '250', '250', '2', '6', '0', '0', '300'])
    expect(cells.some(([name]) => name === 'storm in one namespace')).toBe(false)
  })
})

function round(keys: number, operatorSeconds: number, change: Partial<IssuingRound['operator']> = {}): IssuingRound {
  const writes = new Map([
    ['POST apikeys', keys],
    ['POST secrets', keys + 32],
    ['PUT secrets', keys * 0.1 - 32],
    ['DELETE secrets', 5],
    ['APPLY apikeys/status', keys],
  ])
  const operator = {
    seconds: operatorSeconds,
    apiServerCpuSeconds: 12,
    writes,
    calls: new Map([['POST', 2 * keys]]),
    keyringCommits: keys * 0.1,
    operatorCpuSeconds: 4,
    idleMib: 200,
    peakMib: 300,
    ...change,
  }
  return { keys, bare: { seconds: 10, apiServerCpuSeconds: 10, writes: new Map([['POST secrets', keys]]) }, operator }
}

describe('issuing', () => {
  test('keyring writes are all writes of Secrets less one write per key', () => {
    expect(keyringWrites(round(1000, 12).operator, 1000)).toBe(100)
  })

  test('totals are medians over the rounds with the same number of keys, and the memory is the largest peak', () => {
    const rounds = [round(1000, 12), round(1000, 14, { peakMib: 350 }), round(5000, 20)]
    const [small, large] = issuingTotals(rounds)
    expect(small).toMatchObject({ keys: 1000, keyringWritesPerKey: 0.1, peakMib: 350 })
    expect(small?.ratio).toBeCloseTo(1.3)
    expect(large?.ratio).toBeCloseTo(2)
  })

  test('the bounds are checked at the largest number of keys', () => {
    expect(isIssuingMissed([round(1000, 99), round(5000, 13)])).toBe(false)
    expect(isIssuingMissed([round(1000, 10), round(5000, 13.1)])).toBe(true)
    expect(isIssuingMissed([round(5000, 10, { peakMib: 401 })])).toBe(true)
    expect(isIssuingMissed([round(5000, 10, { writes: new Map([['PUT secrets', 7000]]) })])).toBe(true)
  })

  test('the report says for each bound whether the bound held', () => {
    const text = renderIssuing([round(5000, 14)])
    expect(text).toContain('5000 keys: all Ready / bare 1.40; must <= 1.3: MISSED')
    expect(text).toContain('5000 keys: keyring writes per key 0.10; must <= 0.2: held')
    expect(text).toContain('5000 keys: peak RSS of the operator 300 MiB; must <= 400 MiB: held')
    expect(text).toContain('calls of the operator POST 2.00')
  })
})
