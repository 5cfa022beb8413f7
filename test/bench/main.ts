/**
 * `make bench` measures Headgate in four programs: requests, operator, limits and dashboard. `PART` chooses programs or parts of them, and
 * `BASE=<a commit, or a folder with a clone and its dist/>` names the build that this clone is compared with. Prints a report, and keeps it below .headgate/bench/.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { runInside, type Inside } from './inside.ts'
import { accountsPart } from './accounts.ts'
import { creditsPart } from './credits.ts'
import { customersPart } from './customers.ts'
import { dashboardPart } from './dashboard.ts'
import { LIMIT_PARTS } from './limits.ts'
import { issuingPart } from './issuing.ts'
import type { Part, PartResult } from './part.ts'
import { REQUEST_PARTS } from './requests.ts'
import { scalePart } from './scale.ts'
import { spendPart } from './spend.ts'
import { stormPart } from './storm.ts'
import { tenantsPart } from './tenants.ts'

const ROOT = join(import.meta.dirname, '../..')
/** What the operator costs, and how fast its changes reach the gateways: real API server, Redis, operator and gateways. */
const OPERATOR_PARTS: readonly Part[] = [
  { name: 'storm', needs: 'control-plane', run: stormPart },
  { name: 'issuing', needs: 'control-plane', run: issuingPart },
  { name: 'spend', needs: 'control-plane', run: spendPart },
  { name: 'accounts', needs: 'control-plane', run: accountsPart },
  { name: 'credits', needs: 'control-plane', run: creditsPart },
  { name: 'tenants', needs: 'control-plane', run: tenantsPart },
  { name: 'scale', needs: 'control-plane', run: scalePart },
]
const PROGRAMS: Readonly<Record<string, readonly Part[]>> = {
  requests: REQUEST_PARTS,
  operator: OPERATOR_PARTS,
  limits: LIMIT_PARTS,
  dashboard: [
    { name: 'sign-ups', needs: 'control-plane', run: dashboardPart },
    { name: 'customers', needs: 'control-plane', run: customersPart },
  ],
}
/** Above this load average before the start the machine is busy: numbers are printed, and no bound counts. */
const MAX_LOAD_AVERAGE = 2

/** The parts of these names of programs and parts; all without a name. @throws RangeError that lists the names */
export function chosenParts(text: string): Part[] {
  const all = Object.values(PROGRAMS).flat()
  const names = text.split(/[\s,]+/).filter((name) => name !== '')
  const found = names.flatMap((name) => PROGRAMS[name] ?? all.filter((part) => part.name === name))
  const unknown = names.find((name) => !(name in PROGRAMS) && !all.some((part) => part.name === name))
  if (unknown === undefined) return names.length === 0 ? all : found
  const known = Object.entries(PROGRAMS).map(([program, parts]) => `${program} (${parts.map(({ name }) => name).join(' ')})`)
  throw new RangeError(`PART: there is no "${unknown}"; choose of ${known.join(', ')}`)
}

function wholeNumber(name: string, fallback: number): number {
  const text = process.env[name] ?? ''
  const value = text === '' ? fallback : Number(text)
  if (!Number.isInteger(value) || value < 1) throw new RangeError(`${name}: "${text}" is not a whole number above 0`)
  return value
}

async function main(): Promise<number> {
  const parts = chosenParts(process.env['PART'] ?? '')
  const isQuick = process.env['BENCH_QUICK'] === '1'
  const options = {
    base: baseOf(process.env['BASE'] ?? ''),
    isQuick,
    rounds: wholeNumber('BENCH_ROUNDS', isQuick ? 1 : 7),
    keys: wholeNumber('BENCH_KEYS', isQuick ? 300 : 50_000),
    seconds: wholeNumber('BENCH_SECONDS', isQuick ? 1 : 3),
    say: (line: string) => void process.stdout.write(`${line}\n`),
  }
  const needs = new Set(parts.map((part) => part.needs))
  const run = async (inside: Inside): Promise<number> => {
    const head = describeRun(options.base)
    const busy = loadAverage() > MAX_LOAD_AVERAGE || availableParallelism() < 2
    options.say(head)
    const results: [name: string, result: PartResult][] = []
    for (const part of parts) {
      options.say(`\n== ${part.name} ==`)
      const result = await part.run({ ...options, ...inside })
      for (const line of result.lines) options.say(line)
      results.push([part.name, result])
    }
    if (isQuick) options.say('TRIAL RUN: too little was measured; no bound counts')
    if (busy) options.say('NOT VALID: the machine was busy before the start, or has one core; no bound counts')
    options.say(`kept in ${keep(head, results)}`)
    return !busy && !isQuick && results.some(([, { isMissed }]) => isMissed) ? 1 : 0
  }
  return runInside({ script: import.meta.filename, needs, run })
}

/** @param text a folder with a clone, or a commit, which is built in a worktree below .headgate/bench/ @throws Error if the text is neither */
function baseOf(text: string): string | undefined {
  if (text === '') return undefined
  if (existsSync(join(text, 'dist'))) return resolve(text)
  const git = (...args: string[]): string => execFileSync('git', ['-C', ROOT, ...args], { encoding: 'utf8' }).trim()
  const folder = join(ROOT, '.headgate/bench', `base-${git('rev-parse', '--verify', '--short=12', `${text}^{commit}`)}`)
  if (existsSync(join(folder, 'dist'))) return folder
  if (!existsSync(folder)) git('worktree', 'add', '--detach', folder, text)
  process.stdout.write(`bench: building ${text} in ${folder}\n`)
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  execFileSync(process.execPath, ['build.ts'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  return folder
}

const loadAverage = (): number => Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0])

function describeRun(base: string | undefined): string {
  const commit = (folder: string): string =>
    execFileSync('git', ['-C', folder, 'describe', '--always', '--dirty'], { encoding: 'utf8' }).trim()
  const cpu = /^(?:model name|CPU part)\s*:\s*(.+)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? 'unknown CPU'
  const compared = base === undefined ? '' : `, beside ${commit(base)} (BASE)`
  return `bench: ${new Date().toISOString()}, ${commit(ROOT)}${compared}, Node ${process.version}, ${cpu}, ${availableParallelism()} cores, load average ${loadAverage()} before the start`
}

function keep(head: string, results: ReadonlyArray<readonly [string, PartResult]>): string {
  const folder = join(ROOT, '.headgate/bench')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${new Date().toISOString().replaceAll(/[:.]/g, '-')}.txt`)
  const text = results.map(([name, { lines }]) => `== ${name} ==\n${lines.join('\n')}\n`)
  writeFileSync(file, `${head}\n\n${text.join('\n')}`)
  const data = Object.fromEntries(results.map(([name, result]) => [name, result.data]))
  writeFileSync(file.replace(/txt$/, 'json'), JSON.stringify({ head, ...data }, null, 1))
  return file
}

if (import.meta.main) process.exitCode = await main()
