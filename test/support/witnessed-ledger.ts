/** A ledger that records each admission before the request is served, with the time of CLOCK_MONOTONIC, which all processes of a machine share. */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { Hold, Ledger, LedgerSnapshot, LimitSubject, Need, Refused, SettledUsage, Verdict } from '../../gateway/limits/ledger.ts'
import type { LedgerFacts } from '../../gateway/metrics.ts'

/** One admitted request. Times are ms of CLOCK_MONOTONIC. */
export interface Admission {
  readonly uid: string
  readonly atMs: number
  readonly heldTokens: number
  readonly heldMicros: number
  /** When it was settled or released; undefined while it runs, and for ever if its process was killed. */
  endedAtMs?: number
  /** Whether the request was released before it reached a backend, so that it no longer counts. */
  wasReleased?: boolean
  usedTokens?: number
  costMicros?: number
}

type Line =
  | readonly ['admit', id: string, atMs: number, uid: string, tokens: number, micros: number]
  | readonly ['settle' | 'release', id: string, atMs: number, tokens: number, micros: number]

const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6

/** Wraps the ledger of one process. The lines in the file outlive the process, even after a kill. */
export class WitnessedLedger implements Ledger, LedgerFacts {
  readonly #ledger: Ledger & LedgerFacts
  readonly #file: number
  readonly #run: string
  readonly #ids = new WeakMap<Hold, string>()
  #count = 0

  /** @param file appended to; a restarted process uses the same one @param run differs at each start */
  constructor(ledger: Ledger & LedgerFacts, file: string, run: string) {
    this.#ledger = ledger
    this.#file = openSync(file, 'a')
    this.#run = run
  }

  get stats(): LedgerFacts['stats'] {
    return this.#ledger.stats
  }

  get breaker(): LedgerFacts['breaker'] {
    return this.#ledger.breaker
  }

  reserve(subjects: readonly LimitSubject[], need: Need): Verdict | Promise<Verdict> {
    const seen = (verdict: Verdict): Verdict => this.#admitted(verdict, subjects, need)
    const verdict = this.#ledger.reserve(subjects, need)
    return verdict instanceof Promise ? verdict.then(seen) : seen(verdict)
  }

  /** The time is read before the ledger gets the call: a unit is used again only after it was counted as free. */
  settle(hold: Hold, usage: SettledUsage): void {
    this.#ended('settle', hold, usage)
    this.#ledger.settle(hold, usage)
  }

  release(hold: Hold): void {
    this.#ended('release', hold, { inputTokens: 0, outputTokens: 0, costMicros: 0 })
    this.#ledger.release(hold)
  }

  knownRefusal(subject: LimitSubject): Refused | undefined {
    return this.#ledger.knownRefusal(subject)
  }

  reportAgain(): void {
    this.#ledger.reportAgain()
  }

  changed(uid: string): void {
    this.#ledger.changed(uid)
  }

  deleted(uid: string): void {
    this.#ledger.deleted(uid)
  }

  snapshot(subject: LimitSubject): Promise<LedgerSnapshot> {
    return this.#ledger.snapshot(subject)
  }

  async close(deadlineMs: number): Promise<void> {
    await this.#ledger.close(deadlineMs)
    closeSync(this.#file)
  }

  #admitted(verdict: Verdict, subjects: readonly LimitSubject[], { tokens, holdByUnit }: Need): Verdict {
    const uid = subjects[0]?.uid
    if (verdict.outcome !== 'held' || uid === undefined) return verdict
    const id = `${this.#run}-${(this.#count += 1)}`
    this.#ids.set(verdict, id)
    const held = Math.min(tokens, subjects[0]?.limits.tokensPerMinute ?? Infinity)
    this.#write(['admit', id, monotonicMs(), uid, held, holdByUnit.Currency ?? 0])
    return verdict
  }

  #ended(how: 'settle' | 'release', hold: Hold, usage: Pick<SettledUsage, 'inputTokens' | 'outputTokens' | 'costMicros'>): void {
    const { inputTokens, outputTokens, costMicros = 0 } = usage
    const id = this.#ids.get(hold)
    if (id !== undefined && this.#ids.delete(hold)) this.#write([how, id, monotonicMs(), inputTokens + outputTokens, costMicros])
  }

  #write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`)
  }
}

/** All admissions of several processes, by time. A line that a kill has cut in two is not an admission: its request was not served. */
export function readAdmissions(files: readonly string[]): Admission[] {
  const admissions = new Map<string, Admission>()
  for (const line of files.flatMap(readLines)) {
    if (line[0] === 'admit') {
      const [, id, atMs, uid, heldTokens, heldMicros] = line
      admissions.set(id, { uid, atMs, heldTokens, heldMicros })
    } else {
      const [how, id, endedAtMs, usedTokens, costMicros] = line
      const admission = admissions.get(id)
      if (admission) Object.assign(admission, { endedAtMs, wasReleased: how === 'release', usedTokens, costMicros })
    }
  }
  return [...admissions.values()].toSorted((a, b) => a.atMs - b.atMs)
}

function readLines(file: string): Line[] {
  const whole = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return whole.map((line) => JSON.parse(line) as Line) // written above
}

export function mostRequests(admissions: readonly Admission[], windowMs: number): number {
  return mostInAnyWindow(admissions, windowMs, ({ wasReleased = false }) => ({ held: 1, used: wasReleased ? 0 : 1 }))
}

/** Maximum tokens, held or settled, of the requests in any window of this length. */
export function mostTokens(admissions: readonly Admission[], windowMs: number): number {
  return mostInAnyWindow(admissions, windowMs, tokensOf)
}

/**
 * Mean of the tokens, held or settled, over all windows of this length that begin after the first request. Calls that run longer on a busy
 * machine hold their tokens longer, so the mean does not depend on its speed.
 */
export function meanTokens(admissions: readonly Admission[], windowMs: number): number {
  const [fromMs, toMs] = [(admissions[0]?.atMs ?? 0) + windowMs, admissions.at(-1)?.atMs ?? 0]
  let [present, beforeMs, area] = [0, fromMs, 0]
  for (const { atMs, amount } of changesOf(admissions, windowMs, tokensOf)) {
    const untilMs = Math.min(Math.max(atMs, fromMs), toMs)
    area += present * (untilMs - beforeMs)
    beforeMs = untilMs
    present += amount
  }
  return toMs > fromMs ? area / (toMs - fromMs) : 0
}

/**
 * Amount per window, over the whole windows of a load but its first. A part of a window would not do: a load above the limit is admitted in its
 * first seconds.
 */
export function perWindow(admissions: readonly Admission[], windowMs: number, amount: (admission: Admission) => number): number {
  const [first, last] = [admissions[0], admissions.at(-1)]
  if (!first || !last) return 0
  const fromMs = first.atMs + windowMs
  const windows = Math.floor((last.atMs - fromMs) / windowMs)
  if (windows < 1) return 0
  const counted = admissions.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + windows * windowMs)
  return counted.reduce((sum, admission) => sum + amount(admission), 0) / windows
}

type Amounts = (admission: Admission) => { readonly held: number; readonly used: number }

const tokensOf: Amounts = ({ heldTokens: held, usedTokens: used = held }) => ({ held, used })

interface Change {
  readonly atMs: number
  readonly amount: number
}

/** Slides a window over the list. A window excludes one of its ends, so an admission leaves before another one enters. */
function changesOf(admissions: readonly Admission[], windowMs: number, amounts: Amounts): Change[] {
  const changes = admissions.flatMap((admission): Change[] => {
    const { atMs, endedAtMs = Infinity } = admission
    const { held, used } = amounts(admission)
    const endMs = atMs + windowMs
    const entered = { atMs, amount: held }
    if (endedAtMs >= endMs) return [entered, { atMs: endMs, amount: -held }]
    return [entered, { atMs: endedAtMs, amount: used - held }, { atMs: endMs, amount: -used }]
  })
  return changes.toSorted((a, b) => a.atMs - b.atMs || a.amount - b.amount)
}

function mostInAnyWindow(admissions: readonly Admission[], windowMs: number, amounts: Amounts): number {
  let present = 0
  let most = 0
  for (const { amount } of changesOf(admissions, windowMs, amounts)) {
    present += amount
    most = Math.max(most, present)
  }
  return most
}
