/**
 * Limits with a real minute in four gateway processes on one Redis, for some minutes. Measures the part of a limit that is used at three times
 * its load, and the number of calls to Redis.
 *
 *   node test/bench/limits-soak.ts [--windows N]          or SOAK_LIMIT_WINDOWS (3): minutes after the first
 */
import { parseArgs } from 'node:util'
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import { LimitsLab, type Statuses } from '../support/limit-processes.ts'
import { mostRequests, mostTokens, perWindow } from '../support/witnessed-ledger.ts'
import { describeMachine } from './machine.ts'
import { unfit } from './report.ts'

const { windowMs } = LEDGER_TIMING
const CLOCK_SHIFTS_MS = [0, 5_000, -5_000, 2_500]
/** 100 decisions a second for each process. */
const PER_SECOND = 100 * CLOCK_SHIFTS_MS.length
const TIMES = 3
const LIMIT = Math.floor((PER_SECOND / TIMES) * (windowMs / 1_000))
/** At this load, no request is refused. */
const ROOMY_USE = 0.8
const ROOMY = (PER_SECOND / ROOMY_USE) * (windowMs / 1_000)
const ROOMY_SECONDS = 75
/** The load goes on for some seconds, so that the last counted minute is a whole one. */
const LAST_SECONDS = 10
/** A token limit above all that admitted requests hold, so that it never refuses, but close enough to be counted like a limit that may refuse. */
const TOKENS = 40 * ROOMY

interface Row {
  readonly what: string
  readonly seen: number
  readonly must: string
  readonly isMet: boolean
}

const atLeast = (what: string, seen: number, bound: number): Row => ({ what, seen, must: `>= ${bound}`, isMet: seen >= bound })
const atMost = (what: string, seen: number, bound: number): Row => ({ what, seen, must: `<= ${bound}`, isMet: seen <= bound })

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { windows: { type: 'string' } } })
  const windows = Number(values.windows ?? process.env.SOAK_LIMIT_WINDOWS ?? 3)
  if (!(windows > 0 && windows <= 1_000)) {
    process.stderr.write('windows: this is no number above 0 and up to 1000; write for example SOAK_LIMIT_WINDOWS=3\n')
    return 2
  }
  const reason = unfit(describeMachine())
  const lab = await LimitsLab.start({
    timing: LEDGER_TIMING,
    clockShiftsMs: CLOCK_SHIFTS_MS,
    keys: {
      hot: { limits: { requestsPerMinute: LIMIT } },
      roomy: { limits: { requestsPerMinute: ROOMY, tokensPerMinute: TOKENS } },
    },
  })
  try {
    const rows = [...(await saturated(lab, windows)), ...(await withRoom(lab))]
    for (const { what, seen, must, isMet } of rows)
      say(`  ${what.padEnd(66)} ${seen.toFixed(4).padStart(12)}   must ${must}${isMet ? '' : '   MISSED'}`)
    if (reason !== undefined) say(`  NOT VALID: ${reason}`)
    return reason === undefined && rows.some(({ isMet }) => !isMet) ? 1 : 0
  } finally {
    await lab.stop()
  }
}

async function saturated(lab: LimitsLab, windows: number): Promise<Row[]> {
  say(`limits: ${CLOCK_SHIFTS_MS.length} processes, ${PER_SECOND} calls/s on a key of ${LIMIT} requests a minute, ${windows + 1} minutes`)
  const before = await lab.storeCalls()
  const seconds = (windows + 1) * (windowMs / 1_000) + LAST_SECONDS
  const [statuses = {}] = await lab.load([{ uid: 'hot', perSecond: PER_SECOND }], seconds)
  const calls = (await lab.storeCalls()) - before
  const admissions = lab.admissions().filter(({ uid }) => uid === 'hot')
  say(`  answers ${JSON.stringify(statuses)}, ${calls} calls to Redis`)
  return [
    atMost('most requests in any rolling minute, of the limit', mostRequests(admissions, windowMs) / LIMIT, 1),
    atLeast('requests a minute after the first, of the limit', perWindow(admissions, windowMs, () => 1) / LIMIT, 0.93),
    atMost('calls to Redis per decision at three times the limit', calls / total(statuses), 0.05),
  ]
}

async function withRoom(lab: LimitsLab): Promise<Row[]> {
  say(`limits: ${PER_SECOND} calls/s on a key of ${ROOMY} requests and ${TOKENS} tokens a minute, ${ROOMY_SECONDS} s`)
  const before = await lab.storeCalls()
  const [statuses = {}] = await lab.load([{ uid: 'roomy', perSecond: PER_SECOND }], ROOMY_SECONDS)
  const calls = (await lab.storeCalls()) - before
  const admissions = lab.admissions().filter(({ uid }) => uid === 'roomy')
  say(`  answers ${JSON.stringify(statuses)}, ${calls} calls to Redis`)
  return [
    atMost('refusals at 0.8 times the limit', (statuses['429'] ?? 0) / total(statuses), 0),
    atMost('calls to Redis per admission at 0.8 times the limit', calls / Math.max(1, admissions.length), 0.05),
    atMost('most tokens in any rolling minute, of the limit', mostTokens(admissions, windowMs) / TOKENS, 1),
  ]
}

function total(statuses: Statuses): number {
  return Object.values(statuses).reduce((sum, count) => sum + count, 0)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

process.exitCode = await main()
