/**
 * Logs the state of each object, as `kubectl get`, `describe` and the Events show it in a cluster. It compares states and not changes: it
 * does not log a state of a moment, and always logs the last state.
 */
import type { Cancel, Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { ApiKind } from '#api/kind.ts'
import type { EventText } from '#kube/events.ts'
import type { KubeObject } from '#kube/port.ts'
import type { ObjectReport } from './object-report.ts'
import { titleOf } from './object-report.ts'
import { eventLine, linesOf, type ReportChange } from './status-lines.ts'

/** What the reporter needs. */
export interface StatusReporterDeps {
  readonly clock: Clock
  readonly log: Log
  /** The current report of an object; undefined if it does not exist. */
  readonly report: (kind: ApiKind, name: string) => ObjectReport | 'Deleting' | undefined
  /** Called after the lines about these changes were logged. */
  readonly onReported: (changes: readonly ReportChange[]) => void
}

interface Pending {
  readonly kind: ApiKind
  readonly name: string
  /** The state that is about to be logged. */
  readonly signature: string
  readonly report: ObjectReport | undefined
  readonly sinceMs: number
}

interface ReportedEvent {
  readonly kind: string
  /** `namespace/name` */
  readonly name: string
  readonly text: EventText
  readonly atMs: number
}

const CHECK_MS = 50
/** A state is logged after it has lasted for this time, ms. */
const LASTING_MS = 150
/** The same for a state that usually ends by itself, ms. */
const PASSING_MS = 5_000
/** An object with more lines than this in a minute must keep a state longer: each time twice as long. */
const LINES_A_MINUTE = 4
const LONGEST_MS = 20_000
/** After changes of this many objects within GATHER_MS, the next lines are logged together. */
const MANY = 10
const GATHER_MS = 2_000
const MINUTE_MS = 60_000
/** The same Event of an object is logged again after this time, ms. */
const EVENT_AGAIN_MS = 6 * MINUTE_MS
const MOST_REMEMBERED = 2_000

/** Follows the reports of all objects. */
export class StatusReporter {
  readonly #deps: StatusReporterDeps
  readonly #said = new Map<string, ObjectReport>()
  readonly #signatures = new Map<string, string>()
  readonly #changed = new Map<string, { readonly kind: ApiKind; readonly name: string }>()
  readonly #pending = new Map<string, Pending>()
  readonly #saidAtMs = new Map<string, number[]>()
  readonly #events: ReportedEvent[] = []
  readonly #saidEvents = new Map<string, number>()
  #isStarted = false
  #quietUntilMs = 0
  /** Changes that were logged since `sinceMs`, GATHER_MS at most. */
  #burst = { sinceMs: -Infinity, changes: 0 }
  #cancel: Cancel | undefined

  constructor(deps: StatusReporterDeps) {
    this.#deps = deps
  }

  /** Notes that an object may have another report. */
  changed(kind: ApiKind, name: string): void {
    this.#changed.set(`${kind.resource.kind} ${name}`, { kind, name })
    this.#checkSoon()
  }

  /** Notes a deleted object, which is logged even if the object was never logged before. */
  deleted(kind: ApiKind, name: string): void {
    this.#signatures.set(`${kind.resource.kind} ${name}`, 'Deleted')
    this.changed(kind, name)
  }

  /** Logs a Warning, unless a condition of the object has the same content. */
  event({ kind, metadata }: KubeObject, text: EventText): void {
    if (text.type !== 'Warning') return
    this.#events.push({ kind, name: `${metadata.namespace ?? ''}/${metadata.name}`, text, atMs: this.#deps.clock.monotonic() })
    this.#checkSoon()
  }

  /** Whether no work is under way: every object has a status of its current manifest, and no object has a passing problem. */
  get isSettled(): boolean {
    this.#takeChanges()
    return [...this.#pending.values()].every(
      ({ report }) => report === undefined || (report.isCurrent && report.problems.every(({ weight }) => weight !== 'Passing')),
    )
  }

  /** Reports the current state of all objects, and each change from then on. */
  start(): void {
    this.#isStarted = true
    this.#takeChanges()
    this.#say([...this.#pending.values()].filter(({ report }) => report?.isCurrent !== false))
    this.#checkSoon()
  }

  stop(): void {
    this.#isStarted = false
    this.#cancel?.()
  }

  #checkSoon(): void {
    if (!this.#isStarted || this.#cancel !== undefined) return
    this.#cancel = this.#deps.clock.after(CHECK_MS, () => {
      this.#cancel = undefined
      this.#check()
      if (this.#pending.size > 0 || this.#events.length > 0) this.#checkSoon()
    })
  }

  #check(): void {
    this.#takeChanges()
    const nowMs = this.#deps.clock.monotonic()
    if (nowMs < this.#quietUntilMs) return
    this.#say([...this.#pending].filter(([id, one]) => nowMs - one.sinceMs >= this.#patienceMs(id, one, nowMs)).map(([, one]) => one))
    this.#sayEvents(nowMs)
  }

  #takeChanges(): void {
    const nowMs = this.#deps.clock.monotonic()
    for (const [id, { kind, name }] of this.#changed) {
      const report = this.#deps.report(kind, name)
      if (report === 'Deleting') {
        this.#pending.delete(id)
        continue
      }
      const signature = signatureOf(report)
      const waiting = this.#pending.get(id)
      if (signature === (this.#signatures.get(id) ?? '')) this.#pending.delete(id)
      else if (waiting?.signature !== signature) this.#pending.set(id, { kind, name, signature, report, sinceMs: nowMs })
    }
    this.#changed.clear()
  }

  #patienceMs(id: string, { report }: Pending, nowMs: number): number {
    if (report === undefined) return 0
    if (!report.isCurrent || report.problems.some(({ weight }) => weight === 'Passing')) return PASSING_MS
    const recent = (this.#saidAtMs.get(id) ?? []).filter((atMs) => nowMs - atMs < MINUTE_MS).length
    return Math.min(LONGEST_MS, LASTING_MS * 2 ** Math.max(0, recent - LINES_A_MINUTE))
  }

  #say(due: readonly Pending[]): void {
    if (due.length === 0) return
    const nowMs = this.#deps.clock.monotonic()
    const changes = due.map((one) => this.#take(one, nowMs))
    const lines = linesOf(changes)
    for (const { level, fields, text } of lines) this.#deps.log[level]({ ...fields }, text)
    this.#gather(due.length, nowMs)
    this.#deps.onReported(changes)
  }

  /** Many objects may change in small groups. After the first groups, the others share their lines. */
  #gather(changes: number, nowMs: number): void {
    if (nowMs - this.#burst.sinceMs >= GATHER_MS) this.#burst = { sinceMs: nowMs, changes: 0 }
    this.#burst.changes += changes
    if (this.#burst.changes > MANY) this.#quietUntilMs = nowMs + GATHER_MS
  }

  #take({ kind, name, report, signature }: Pending, nowMs: number): ReportChange {
    const id = `${kind.resource.kind} ${name}`
    const before = this.#said.get(id)
    this.#pending.delete(id)
    if (report === undefined) {
      for (const map of [this.#said, this.#signatures, this.#saidAtMs]) map.delete(id)
      return { kind: kind.resource.kind, name, before, after: undefined }
    }
    this.#said.set(id, report)
    this.#signatures.set(id, signature)
    this.#saidAtMs.set(id, [...(this.#saidAtMs.get(id) ?? []).filter((atMs) => nowMs - atMs < MINUTE_MS), nowMs])
    return { kind: kind.resource.kind, name, before, after: report }
  }

  #sayEvents(nowMs: number): void {
    while ((this.#events[0]?.atMs ?? Infinity) <= nowMs - LASTING_MS) {
      const event = this.#events.shift()
      if (event !== undefined) this.#sayEvent(event, nowMs)
    }
  }

  #sayEvent({ kind, name, text: event }: ReportedEvent, nowMs: number): void {
    const title = titleOf({ kind, name })
    const report = this.#pending.get(title)?.report ?? this.#said.get(title)
    if (report?.problems.some((problem) => problem.reason === event.reason)) return
    const { fields, text } = eventLine(kind, name, event)
    if (nowMs - (this.#saidEvents.get(text) ?? -Infinity) < EVENT_AGAIN_MS) return
    if (this.#saidEvents.size >= MOST_REMEMBERED) this.#saidEvents.clear()
    this.#saidEvents.set(text, nowMs)
    this.#deps.log.warn({ ...fields }, text)
  }
}

/** '' for an object that does not exist. Reports with equal signatures read the same. */
function signatureOf(report: ObjectReport | undefined): string {
  return report === undefined ? '' : JSON.stringify([report.isReady, report.isCurrent, report.problems])
}
