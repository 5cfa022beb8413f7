/** Turns measurements of the operator into the text of a report. Pure. */
import { keyringWrites, type IssuingRound, type Measured } from './issuing.ts'
import { PROBE_DEADLINE_MS, type Probe } from './probe-protocol.ts'
import { quantile, spread } from './statistics.ts'
import type { StormResult } from './storm.ts'
import { table } from './table.ts'

/** A promise in numbers: the limit and the aim. */
export interface Bound {
  readonly name: string
  readonly unit: string
  readonly must: number
  readonly aim?: number
}

/** How long an ended key may still work during a storm. */
export const STILL_WORKS_P99: Bound = { name: 'p99', unit: 'ms', must: 1_000, aim: 300 }
/** All Ready ÷ bare. */
export const ISSUING_RATIO: Bound = { name: 'all Ready / bare', unit: '', must: 1.3 }
/** Keyring Secrets are written in groups. */
export const KEYRING_WRITES: Bound = { name: 'keyring writes per key', unit: '', must: 0.2 }
/** Peak resident memory of the operator. */
export const PEAK_RSS: Bound = { name: 'peak RSS of the operator', unit: 'MiB', must: 400 }

/** Prints the limit, the aim, and whether each is met: `must <= 1000 ms: held; aim <= 300 ms: missed`. */
export function compared({ unit, must, aim }: Bound, value: number): string {
  const one = (word: string, most: number): string =>
    `${word} <= ${most}${unit === '' ? '' : ` ${unit}`}: ${value <= most ? 'held' : 'MISSED'}`
  return [one('must', must), ...(aim === undefined ? [] : [one('aim', aim)])].join('; ')
}

/** Times of probes, ms; a probe that was never refused counts with the deadline. */
export function timesOf(probes: readonly Probe[]): number[] {
  return probes.map(({ ms }) => ms ?? PROBE_DEADLINE_MS)
}

/** The measured p99 over all storms, ms. */
export function stormP99(storms: readonly StormResult[]): number {
  return quantile(timesOf(storms.flatMap(({ during }) => during)), 0.99)
}

/** Whether a storm broke a limit: too slow, not finished, or a key that had ended was admitted again. */
export function isStormMissed(storms: readonly StormResult[]): boolean {
  const isBroken = ({ describedSeconds, summary }: StormResult): boolean => describedSeconds === undefined || summary.admittedAgain > 0
  return !(stormP99(storms) <= STILL_WORKS_P99.must) || storms.some(isBroken)
}

/** The storms of one kind beside the same probes without a storm. */
export function renderStorms(storms: readonly StormResult[]): string {
  const [first] = storms
  if (!first) return 'storm: nothing was measured'
  const { keys, hasStoppedGateway } = first.plan
  const gateways = hasStoppedGateway ? 'two gateways asked, a third one stopped by SIGSTOP and still listed' : 'two gateways'
  const during = storms.flatMap((storm) => storm.during)
  const oneNamespace = storms.filter(({ plan }) => plan.namespaces === 1).flatMap((storm) => storm.during)
  const cases: [string, readonly Probe[]][] = [
    ['no storm', storms.flatMap(({ idle }) => idle)],
    ['storm: suspended', during.filter(({ change }) => change === 'suspend')],
    ['storm: deleted', during.filter(({ change }) => change === 'delete')],
    ['storm in one namespace', oneNamespace],
    ['storm, all', during],
  ]
  const measured = cases.filter(([, probes]) => probes.length > 0)
  const rows = measured.map(([name, probes]) => ['', name, ...probeCells(probes), name === 'storm, all' ? stormVerdict(storms) : ''])
  return [
    `storm: ${keys.toLocaleString('en')} ApiKeys applied at once, 32 calls in flight, ${storms.length} storms; ${gateways}. Older keys are suspended and`,
    "  deleted, spread over each storm; from the API server's answer to that write until every asked gateway answers 401.",
    ...table([['', 'case', 'n', 'p50 ms', 'p99 ms', 'max ms', 'never', 'write p50 ms', ''], ...rows]),
    ...table([
      [
        '',
        'storm',
        'keys',
        'namespaces',
        'applied s',
        'all Secrets s',
        'all statuses s',
        'p99 ms',
        'max ms',
        'most waiting',
        'resolution ms',
        'again',
        'restarts',
        'peak MiB',
      ],
      ...storms.map(stormRow),
    ]),
    '  never: not within 150 s. resolution: time between two questions about one key, p99; a measured time is too long by as much at most.',
    '  again: ended keys that a gateway admitted after the storm. restarts, peak MiB: of the operator.',
  ].join('\n')
}

function stormVerdict(storms: readonly StormResult[]): string {
  return compared(STILL_WORKS_P99, stormP99(storms))
}

function probeCells(probes: readonly Probe[]): string[] {
  const times = timesOf(probes)
  const at = (share: number): string => whole(quantile(times, share))
  const never = probes.filter(({ ms }) => ms === null).length
  const writes = probes.map(({ writeMs }) => writeMs)
  return [String(probes.length), at(0.5), at(0.99), at(1), String(never), whole(quantile(writes, 0.5))]
}

function stormRow({ plan, during, summary, ...took }: StormResult): string[] {
  const times = timesOf(during)
  const seconds = [took.createdSeconds, took.issuedSeconds, took.describedSeconds].map((value) => value?.toFixed(1) ?? 'unfinished')
  const found = [
    quantile(times, 0.99),
    quantile(times, 1),
    summary.mostWaiting,
    summary.resolutionMs,
    summary.admittedAgain,
    took.operatorRestarts,
    took.operatorPeakMib,
  ].map(whole)
  return ['', plan.name, String(plan.keys), String(plan.namespaces), ...seconds, ...found]
}

/** The results of the rounds with one number of keys: medians over the rounds, and the largest peak of memory. */
export interface IssuingTotals {
  readonly keys: number
  readonly ratio: number
  readonly keyringWritesPerKey: number
  readonly peakMib: number
}

/** Totals by number of keys, in the order of the rounds. */
export function issuingTotals(rounds: readonly IssuingRound[]): IssuingTotals[] {
  return [...Map.groupBy(rounds, ({ keys }) => keys)].map(([keys, some]) => ({
    keys,
    ratio: median(some.map(ratioOf)),
    keyringWritesPerKey: median(some.map(({ operator }) => keyringWrites(operator, keys) / keys)),
    peakMib: Math.max(...some.map(({ operator }) => operator.peakMib)),
  }))
}

/** Whether rounds broke a limit; the limits hold for the largest number of keys. */
export function isIssuingMissed(rounds: readonly IssuingRound[]): boolean {
  const largest = issuingTotals(rounds).toSorted((a, b) => b.keys - a.keys)[0]
  if (!largest) return false
  const { ratio, keyringWritesPerKey, peakMib } = largest
  return !(ratio <= ISSUING_RATIO.must && keyringWritesPerKey <= KEYRING_WRITES.must && peakMib <= PEAK_RSS.must)
}

/** All Ready ÷ bare, calls per key, and memory. */
export function renderIssuing(rounds: readonly IssuingRound[]): string {
  const head = [
    '',
    'keys',
    'bare s',
    'all Ready s',
    'ratio',
    'API server CPU s',
    'ratio',
    'operator CPU s',
    'RSS idle, peak MiB',
    'keyring writes per key',
  ]
  const rows = rounds.map(({ keys, bare, operator }) => {
    const perKey = (count: number): string => (count / keys).toFixed(2)
    return [
      '',
      String(keys),
      bare.seconds.toFixed(1),
      operator.seconds.toFixed(1),
      ratioOf({ bare, operator }).toFixed(2),
      `${bare.apiServerCpuSeconds.toFixed(1)}, ${operator.apiServerCpuSeconds.toFixed(1)}`,
      (operator.apiServerCpuSeconds / bare.apiServerCpuSeconds).toFixed(2),
      operator.operatorCpuSeconds.toFixed(1),
      `${whole(operator.idleMib)}, ${whole(operator.peakMib)}`,
      `${perKey(keyringWrites(operator, keys))} (its own count: ${perKey(operator.keyringCommits)})`,
    ]
  })
  return [
    'issuing: ApiKeys applied at once by one client, 32 calls in flight, over 5 namespaces; from the first write until all are Ready.',
    '  Bare: the same client writes ApiKey, finalizer, Secret, status and one Event of each key, without an operator. In turn, one control plane.',
    ...table([head, ...rows]),
    ...rounds.flatMap(callLines),
    ...issuingTotals(rounds).flatMap(totalLines),
  ].join('\n')
}

function callLines({ keys, bare, operator }: IssuingRound): string[] {
  const perKey = (counts: ReadonlyMap<string, number>): string =>
    [...counts]
      .toSorted(([, a], [, b]) => b - a)
      .map(([name, count]) => [name, (count / keys).toFixed(2)])
      .filter(([, count]) => count !== '0.00')
      .map((one) => one.join(' '))
      .join(', ')
  return [
    `  ${keys} keys, per key: calls of the operator ${perKey(operator.calls)}`,
    `    writes at the API server, bare: ${perKey(bare.writes)}`,
    `    writes at the API server, operator and client: ${perKey(operator.writes)}`,
  ]
}

function totalLines({ keys, ratio, keyringWritesPerKey, peakMib }: IssuingTotals): string[] {
  const line = (bound: Bound, value: number, digits: number): string => {
    const shown = `${value.toFixed(digits)}${bound.unit === '' ? '' : ` ${bound.unit}`}`
    return `  ${keys} keys: ${bound.name} ${shown}; ${compared(bound, value)}`
  }
  return [line(ISSUING_RATIO, ratio, 2), line(KEYRING_WRITES, keyringWritesPerKey, 2), line(PEAK_RSS, peakMib, 0)]
}

function ratioOf({ bare, operator }: { readonly bare: Measured; readonly operator: Measured }): number {
  return operator.seconds / bare.seconds
}

function median(values: readonly number[]): number {
  return spread(values)?.median ?? Number.NaN
}

function whole(value: number): string {
  return value.toFixed(0)
}
