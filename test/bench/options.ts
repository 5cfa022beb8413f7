/** Options of `make bench`: flags, or the environment where `make` is in between. */
import { parseArgs } from 'node:util'
import { CELLS, type Cell } from './cells.ts'

/** Part of the bench that is no cell. */
export const PROPAGATION = 'propagation'

/** What to run, and for how long. */
export interface BenchOptions {
  readonly rounds: number
  /** Length of one window, s. */
  readonly seconds: number
  /** Load before the first window of each contender in each cell, s; 0 = none. */
  readonly warmupSeconds: number
  readonly cells: readonly Cell[]
  /** Keys whose changes are timed, one by one and at once; 0 = not run. */
  readonly propagationKeys: number
  readonly profile: boolean
}

/** What `--help` prints. */
export const HELP = `usage: node test/bench/main.ts [flags]        (or the environment: make bench BENCH_ROUNDS=3)
  --rounds N       BENCH_ROUNDS       rounds; contenders take turns within each            5
  --seconds N      BENCH_SECONDS      length of one window, s                              2
  --warmup N       BENCH_WARMUP       load before the first window of each, s              2
  --only a,b       BENCH_ONLY         of ${[...CELLS.map(({ name }) => name), PROPAGATION].join(' ')}
  --keys N         BENCH_KEYS         keys of the propagation part                         200
  --quick          BENCH_QUICK=1      2 rounds of 1 s, 20 keys: to see whether it works
  --profile        BENCH_PROFILE=1    profile the gateway and print where its CPU time goes; its figures do not count then
  --help
For figures to be published: --seconds 5.
`

interface Given {
  readonly [name: string]: string | boolean | undefined
}

/**
 * Reads the options; flags win over the environment.
 * @returns 'help' when that is what was asked for
 * @throws RangeError that names the option, and how to write it
 */
export function readOptions(args: readonly string[], env: Readonly<Record<string, string | undefined>>): BenchOptions | 'help' {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const flags = { rounds: text, seconds: text, warmup: text, only: text, keys: text, quick: flag, profile: flag, help: flag }
  const given: Given = parseArgs({ args: [...args], options: flags }).values
  if (given['help'] === true) return 'help'
  const value = (name: string): string | undefined => {
    const found = given[name] ?? env[`BENCH_${name.toUpperCase()}`]
    return typeof found === 'string' && found !== '' ? found : undefined
  }
  const isOn = (name: string): boolean => given[name] === true || (value(name) ?? '0') !== '0'
  const quick = isOn('quick')
  const only = readOnly(value('only'))
  return {
    rounds: wholeNumber('rounds', value('rounds'), quick ? 2 : 5),
    seconds: wholeNumber('seconds', value('seconds'), quick ? 1 : 2),
    warmupSeconds: wholeNumber('warmup', value('warmup'), quick ? 1 : 2, 0),
    cells: CELLS.filter(({ name }) => only === undefined || only.includes(name)),
    propagationKeys: only === undefined || only.includes(PROPAGATION) ? wholeNumber('keys', value('keys'), quick ? 20 : 200, 2) : 0,
    profile: isOn('profile'),
  }
}

function readOnly(text: string | undefined): readonly string[] | undefined {
  if (text === undefined) return undefined
  const known = [...CELLS.map(({ name }) => name), PROPAGATION]
  const names = text.split(',').map((name) => name.trim())
  const wrong = names.find((name) => !known.includes(name))
  if (wrong !== undefined) throw new RangeError(`only: there is no "${wrong}"; choose of ${known.join(', ')}, separated by commas`)
  return names
}

function wholeNumber(name: string, text: string | undefined, fallback: number, min = 1): number {
  if (text === undefined) return fallback
  const number = Number(text)
  if (!Number.isInteger(number) || number < min || number > 3600) {
    throw new RangeError(`${name}: "${text}" is no whole number from ${min} to 3600; write for example --${name} ${fallback}`)
  }
  return number
}
