/**
 * Limits while Redis, its clock or the gateways fail: four gateway processes on one Redis at three times the limit, and a recorder in front of
 * the model server.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { LEDGER_TIMING, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { wordsOf } from '../../examples/stub-model/stub-format.ts'
import { startStubModel, type StubReceived } from '../../examples/stub-model/stub-model.ts'
import type { RedisClock } from '../support/ledger-redis.ts'
import { LimitsLab, UID_HEADER } from '../support/limit-processes.ts'
import type { ManagedProcess } from '../support/managed-process.ts'
import { SeededRandom } from '../support/seeded-random.ts'
import { waitFor } from '../support/wait-for.ts'
import { type Admission, mostRequests, mostTokens, perWindow } from '../support/witnessed-ledger.ts'
import { type BenchSite, type Bound, breaks, type PartResult, shown } from './part.ts'

interface Attack {
  readonly name: string
  readonly run: (lab: LimitsLab, windowMs: number) => Promise<unknown>
  /** Losses of data in any window. Each costs at most one more limit (`docs/limits.md`). */
  readonly losses?: number
  readonly clock?: RedisClock
}

/**
 * Parts of a limit as the gateways admitted them, and as they reached the server: later by as much as a busy machine or a stopped gateway delays
 * them. `calls` are calls to Redis per decision.
 */
type Seen = Readonly<Record<'requests' | 'tokens' | 'requestsReached' | 'tokensReached' | 'unused' | 'calls', number>>

const PROCESSES = [0, 5_000, -5_000, 2_500]
const WORDS = 16
const CALL = { maxTokens: WORDS, directives: `words=${WORDS}` }
const TOKENS_PER_REQUEST = 20
const TIMES_THE_LIMIT = 3
const WINDOWS = 3.3
const QUICK: LedgerTiming = { windowMs: 6_000, slotMs: 100, leaseMs: 100 }
const JITTER_EVERY_MS = 100
const SEED = Date.now() % 1_000_000
const NO_ATTACK: Attack = { name: 'none', run: () => Promise.resolve() }
/** Without a fault. So few calls per decision need a busier key: `make soak` holds that bound. */
const FULL_USE: Partial<Record<keyof Seen, Bound>> = { unused: { must: 0.05 }, calls: { aim: 0.05 } }

const ATTACKS: readonly Attack[] = [
  NO_ATTACK,
  { name: 'each gateway killed (-9)', run: (lab, windowMs) => eachGateway(lab, windowMs, 'SIGKILL', (one) => lab.launch(one)) },
  { name: 'each gateway stopped', run: (lab, windowMs) => eachGateway(lab, windowMs, 'SIGSTOP', ({ process }) => process.kill('SIGCONT')) },
  { name: 'Redis stopped', run: ({ redis }, windowMs) => stopped(redis.part.process, windowMs / 10) },
  { name: 'FLUSHALL', losses: 1, run: ({ redis }) => redis.part.admin.flushall() },
  { name: 'FLUSHALL three times in a window', losses: 3, run: flushed },
  { name: 'Redis back to its data of half a window ago', losses: 1, run: (lab, windowMs) => restart(lab, windowMs / 2) },
  { name: 'Redis restarted empty', losses: 1, run: (lab) => restart(lab, undefined) },
  { name: 'the clock of Redis 30 s forward', clock: 'shifted', run: ({ redis }) => redis.setClock(30_000) },
  { name: 'the clock of Redis 30 s back', clock: 'shifted', run: ({ redis }) => redis.setClock(-30_000) },
  { name: 'the clock of Redis wrong by up to 4 s, with jumps', clock: 'shifted', run: jitter },
]

/** `ATTACK=…` chooses those whose name contains the text. */
export async function limitAttacksPart({ isQuick, say }: BenchSite): Promise<PartResult> {
  const timing = isQuick ? QUICK : LEDGER_TIMING
  const limit = isQuick ? 100 : 300
  say(
    `${PROCESSES.length} processes, ${limit} requests and ${TOKENS_PER_REQUEST * limit} tokens in any ${timing.windowMs / 1_000} s, SEED ${SEED}`,
  )
  const data: object[] = []
  const lines: string[] = []
  let isMissed = false
  for (const attack of ATTACKS.filter(({ name }) => name.includes(process.env['ATTACK'] ?? ''))) {
    const seen = await attacked(attack, timing, limit)
    const most: Bound = { must: 1 + (attack.losses ?? 0) }
    const bounds: Partial<Record<keyof Seen, Bound>> = {
      requests: most,
      tokens: most,
      requestsReached: {},
      tokensReached: {},
      ...(attack === NO_ATTACK && FULL_USE),
    }
    const values = Object.entries(bounds).map(([what, bound]) => `${what} ${shown(seen[what as keyof Seen], bound, '', 3)}`)
    lines.push(`  ${attack.name}: ${values.join(', ')}`)
    data.push({ attack: attack.name, ...seen })
    isMissed ||= Object.entries(bounds).some(([what, bound]) => breaks(bound, seen[what as keyof Seen]))
  }
  return { lines, isMissed, data }
}

async function attacked({ run, clock = 'own' }: Attack, timing: LedgerTiming, limit: number): Promise<Seen> {
  const arrived: Admission[] = []
  const { windowMs } = timing
  const keys = { requests: { limits: { requestsPerMinute: limit } }, tokens: { limits: { tokensPerMinute: TOKENS_PER_REQUEST * limit } } }
  const model = await startStubModel({ onRequest: (received) => void arrived.push(arrival(received)) })
  const lab = await LimitsLab.start({ timing, clockShiftsMs: PROCESSES, keys, model, clock })
  try {
    const before = await lab.storeCalls()
    const perSecond = (TIMES_THE_LIMIT * limit) / (windowMs / 1_000)
    const loading = lab.load(
      Object.keys(keys).map((uid) => ({ uid, perSecond, call: CALL })),
      (WINDOWS * windowMs) / 1_000,
    )
    const of = (admissions: readonly Admission[], uid: keyof typeof keys): Admission[] => admissions.filter((one) => one.uid === uid)
    await waitFor('a window of load', () => of(arrived, 'requests').length >= limit)
    await sleep(windowMs / 3)
    await run(lab, windowMs)
    const answers = (await loading).flatMap((statuses) => Object.values(statuses)).reduce((sum, count) => sum + count, 0)
    const admitted = lab.admissions()
    return {
      requests: mostRequests(of(admitted, 'requests'), windowMs) / limit,
      tokens: mostTokens(of(admitted, 'tokens'), windowMs) / (TOKENS_PER_REQUEST * limit),
      requestsReached: mostRequests(of(arrived, 'requests'), windowMs) / limit,
      tokensReached: mostTokens(of(arrived, 'tokens'), windowMs) / (TOKENS_PER_REQUEST * limit),
      unused: 1 - perWindow(of(admitted, 'requests'), windowMs, () => 1) / limit,
      calls: ((await lab.storeCalls()) - before) / answers,
    }
  } finally {
    await lab.stop()
  }
}

/** What a request uses: its prompt, and as many words as it asks for. */
function arrival({ headers, body }: StubReceived): Admission {
  const { messages } = JSON.parse(body.toString()) as { messages?: unknown }
  return {
    uid: String(headers[UID_HEADER]),
    atMs: performance.now(),
    heldTokens: wordsOf(messages) + WORDS,
    heldMicros: 0,
  }
}

type Gateway = LimitsLab['gateways'][number]

/** Sends a signal to one gateway after the other, each for a tenth of a window. */
async function eachGateway(
  { gateways }: LimitsLab,
  windowMs: number,
  signal: NodeJS.Signals,
  after: (gateway: Gateway) => Promise<unknown>,
): Promise<void> {
  for (const gateway of gateways) {
    await gateway.process.kill(signal)
    await sleep(windowMs / 10)
    await after(gateway)
  }
}

async function stopped(process: ManagedProcess, ms: number): Promise<void> {
  await process.kill('SIGSTOP')
  await sleep(ms)
  await process.kill('SIGCONT')
}

async function flushed({ redis }: LimitsLab, windowMs: number): Promise<void> {
  for (let time = 0; time < 3; time += 1) {
    await redis.part.admin.flushall()
    await sleep(windowMs / 3)
  }
}

async function jitter({ redis }: LimitsLab, windowMs: number): Promise<void> {
  const random = new SeededRandom(SEED)
  for (let ms = 0; ms < windowMs; ms += JITTER_EVERY_MS) {
    await redis.setClock(random.below(8_001) - 4_000)
    await sleep(JITTER_EVERY_MS)
  }
}

/** Kills Redis. @param ageMs of the data with which it starts again; undefined: without any, until the operator has brought the library */
async function restart({ redis }: LimitsLab, ageMs: number | undefined): Promise<void> {
  const { part } = redis
  await part.admin.acl('SAVE')
  if (ageMs !== undefined) await part.admin.save()
  await sleep(ageMs ?? 0)
  await part.process.kill()
  await part.start()
  if (ageMs === undefined) await redis.load(redis.functions.code)
}
