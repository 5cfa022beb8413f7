/** Options of `make bench`: flags, or environment variables when `make` starts the program. */
import { parseArgs } from 'node:util'
import { CELLS, type Cell } from './cells.ts'
import type { IssuingOptions, StormOptions } from './operator-parts.ts'
import type { SpendOptions } from './spend.ts'

/** Parts of the bench; `gateway` is all cells together. */
const PARTS = [
  'gateway',
  'propagation',
  'storm',
  'storm-stopped',
  'issuing',
  'bursts',
  'cold-start',
  'attacks',
  'idle-streams',
  'limits',
  'subjects',
  'spend',
] as const
type Part = (typeof PARTS)[number]

const CELL_NAMES = CELLS.map(({ name }) => name)

/** The parts to run, and their durations. */
export interface BenchOptions {
  readonly rounds: number
  /** Length of one window, s. */
  readonly seconds: number
  /** Load before the first window of each contender in each cell, s; 0 = none. */
  readonly warmupSeconds: number
  readonly cells: readonly Cell[]
  /** Keys whose changes are timed, one by one and at once; 0 = not run. */
  readonly propagationKeys: number
  /** Storms with two healthy gateways; undefined = not run. */
  readonly storm: StormOptions | undefined
  /** The same beside a stopped gateway; undefined = not run. */
  readonly stormStopped: StormOptions | undefined
  /** All Ready ÷ bare; undefined = not run. */
  readonly issuing: IssuingOptions | undefined
  /** Keys that a gateway starts with; 0 = not run. */
  readonly coldStartKeys: number
  /** Silent streams that are open at the same time; 0 = not run. */
  readonly idleStreams: number
  /** Length of one attack, s; 0 = not run. */
  readonly attackSeconds: number
  /** Rounds of the cost of limits; 0 = not run. */
  readonly limitRounds: number
  /** Subjects whose memory is measured; 0 = not run. */
  readonly subjects: number
  /** Keys with a budget that all spend; undefined = not run. */
  readonly spend: SpendOptions | undefined
  /** Bursts of each kind to a real model server; 0 = not run. */
  readonly bursts: number
  readonly profile: boolean
}

/** The text of `--help`. */
export const HELP = `usage: node test/bench/main.ts [flags]        (or the environment: make bench PART="storm issuing" BENCH_STORMS=1)
  --part "a b"       PART                  of ${PARTS.join(' ')};
                                           or one cell of gateway: ${CELL_NAMES.join(' ')}
  --rounds N         BENCH_ROUNDS          gateway: rounds; contenders take turns within each         5
  --seconds N        BENCH_SECONDS         gateway: length of one window, s                           2
  --warmup N         BENCH_WARMUP          gateway: load before the first window of each, s           2
  --keys N           BENCH_KEYS            propagation: keys                                          200
  --storms N         BENCH_STORMS          storm, storm-stopped: storms of each; the last in one namespace   5
  --storm-keys N     BENCH_STORM_KEYS      storm, storm-stopped: ApiKeys of one storm                 2000
  --issuing-keys "A B"   BENCH_ISSUING_KEYS    issuing: numbers of ApiKeys                            1000 5000
  --issuing-rounds N BENCH_ISSUING_ROUNDS  issuing: rounds of each                                    2
  --start-keys N     BENCH_START_KEYS      cold-start: keys that the gateway starts with                      100000
  --idle-streams N   BENCH_IDLE_STREAMS    idle-streams: silent streams that are open at the same time        1000
  --attack-seconds N BENCH_ATTACK_SECONDS  attacks: length of each attack, s                                  10
  --limit-rounds N   BENCH_LIMIT_ROUNDS    limits: rounds of four windows of --seconds each                           7
  --subjects N       BENCH_SUBJECTS        subjects: keys with limits that are used in one minute                     100000
  --spend-keys N     BENCH_SPEND_KEYS      spend: keys with a budget                                                  10000
  --spend-seconds N  BENCH_SPEND_SECONDS   spend: how long all of them spend, s                                       60
  --bursts N         BENCH_BURSTS          bursts: trials of each kind, directly and through the gateway      10
  --quick            BENCH_QUICK=1         all of it short: to see whether it works
  --profile          BENCH_PROFILE=1       profile the gateway and print where its CPU time goes; its measurements do not count then
  --help
For measurements to be published: --seconds 5.
`

/** Keys that are ended in each storm: five storms make 200. */
const STORM_PROBES = 40
const QUICK_PROBES = 10
const MOST_KEYS = 100_000

interface Given {
  readonly [name: string]: string | boolean | undefined
}

/**
 * Reads the options; flags win over the environment.
 * @returns 'help' if the options ask for help
 * @throws RangeError that names the option, and how to write it
 */
export function readOptions(args: readonly string[], env: Readonly<Record<string, string | undefined>>): BenchOptions | 'help' {
  const given = readFlags(args)
  if (given['help'] === true) return 'help'
  const value = (name: string): string | undefined => {
    const found = given[name] ?? env[variableOf(name)]
    return typeof found === 'string' && found !== '' ? found : undefined
  }
  const isOn = (name: string): boolean => given[name] === true || (value(name) ?? '0') !== '0'
  const quick = isOn('quick')
  const number = (name: string, [full, short]: readonly [number, number], min = 1, max = 3600): number =>
    wholeNumber({ name, min, max, fallback: quick ? short : full }, value(name))
  const { cells, parts } = readParts(value('part'))
  const ifChosen = <T, N>(part: Part, chosen: T, otherwise: N): T | N => (parts.has(part) ? chosen : otherwise)
  const storm: StormOptions = {
    storms: number('storms', [5, 1]),
    keys: number('storm-keys', [2000, 200], 1, MOST_KEYS),
    probes: quick ? QUICK_PROBES : STORM_PROBES,
  }
  const issuing: IssuingOptions = {
    keys: readCounts(value('issuing-keys') ?? (quick ? '100' : '1000 5000')),
    rounds: number('issuing-rounds', [2, 1]),
  }
  return {
    rounds: number('rounds', [5, 2]),
    seconds: number('seconds', [2, 1]),
    warmupSeconds: number('warmup', [2, 1], 0),
    cells,
    propagationKeys: ifChosen('propagation', number('keys', [200, 20], 2), 0),
    storm: ifChosen('storm', storm, undefined),
    stormStopped: ifChosen('storm-stopped', storm, undefined),
    issuing: ifChosen('issuing', issuing, undefined),
    coldStartKeys: ifChosen('cold-start', number('start-keys', [MOST_KEYS, 1_000], 1, MOST_KEYS), 0),
    idleStreams: ifChosen('idle-streams', number('idle-streams', [1_000, 50]), 0),
    attackSeconds: ifChosen('attacks', number('attack-seconds', [10, 2]), 0),
    limitRounds: ifChosen('limits', number('limit-rounds', [7, 1]), 0),
    subjects: ifChosen('subjects', number('subjects', [MOST_KEYS, 2_000], 1, MOST_KEYS), 0),
    spend: ifChosen(
      'spend',
      { keys: number('spend-keys', [10_000, 300], 1, MOST_KEYS), seconds: number('spend-seconds', [60, 10]) },
      undefined,
    ),
    bursts: ifChosen('bursts', number('bursts', [10, 1]), 0),
    profile: isOn('profile'),
  }
}

function readFlags(args: readonly string[]): Given {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const gateway = { rounds: text, seconds: text, warmup: text, keys: text, profile: flag }
  const operator = {
    storms: text,
    'storm-keys': text,
    'issuing-keys': text,
    'issuing-rounds': text,
    bursts: text,
    'start-keys': text,
    'attack-seconds': text,
    'idle-streams': text,
    'limit-rounds': text,
    subjects: text,
    'spend-keys': text,
    'spend-seconds': text,
  }
  return parseArgs({ args: [...args], options: { part: text, ...gateway, ...operator, quick: flag, help: flag } }).values
}

/** Only `PART` has no prefix, since `make bench PART="…"` is the usual call. */
function variableOf(name: string): string {
  return name === 'part' ? 'PART' : `BENCH_${name.toUpperCase().replaceAll('-', '_')}`
}

function readParts(text: string | undefined): { readonly cells: readonly Cell[]; readonly parts: ReadonlySet<string> } {
  const names = text === undefined ? PARTS : words(text)
  const known: readonly string[] = [...PARTS, ...CELL_NAMES]
  const wrong = names.find((name) => !known.includes(name))
  if (wrong !== undefined) throw new RangeError(`part: there is no "${wrong}"; choose of ${known.join(', ')}, separated by spaces`)
  const parts = new Set<string>(names)
  const all: Part = 'gateway'
  return { cells: CELLS.filter(({ name }) => parts.has(all) || parts.has(name)), parts }
}

function readCounts(text: string): number[] {
  return words(text).map((word) => wholeNumber({ name: 'issuing-keys', min: 1, max: MOST_KEYS, fallback: 1000 }, word))
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '')
}

interface NumberOption {
  readonly name: string
  readonly min: number
  readonly max: number
  readonly fallback: number
}

function wholeNumber({ name, min, max, fallback }: NumberOption, text: string | undefined): number {
  if (text === undefined) return fallback
  const number = Number(text)
  if (!Number.isInteger(number) || number < min || number > max) {
    throw new RangeError(`${name}: "${text}" is no whole number from ${min} to ${max}; write for example --${name} ${fallback}`)
  }
  return number
}
