/** The time limits of one attempt, in ticks. */
import type { ModelRecord } from '#contract/records/model-record.ts'
import type { State } from './attempt-state.ts'

/** Ticks of silence after which a stream is kept alive. Time-outs come from the model. */
const KEEP_ALIVE_TICKS = 15
/** Ticks of silence after which a large body that was sent is dropped, and with it the second attempt: such bodies would fill a pod. */
const SILENT_TICKS = 10

/** Why an attempt has to end: one of the time-outs of the model, or a client that does not read. */
export type Overdue = 'total time' | 'first byte' | 'silence' | 'client'

/** When an attempt has last heard of the server and of the client. */
export class AttemptTimes {
  readonly #startedAt: number
  readonly #limits: ModelRecord['timeouts']
  /** Tick at which the request went to the server; undefined before. */
  sentAt: number | undefined = undefined
  /** Tick of the last byte of the backend. */
  heardAt: number
  /** Tick of the last byte to the client, or of the start. */
  wroteAt: number
  /** Tick since which the client does not read. */
  pausedAt: number | undefined = undefined

  /** @param startedAt tick at which the request arrived: a second attempt does not get the time again */
  constructor(startedAt: number, limits: ModelRecord['timeouts']) {
    this.#startedAt = startedAt
    this.#limits = limits
    this.heardAt = startedAt
    this.wroteAt = startedAt
  }

  /** An answer whose server has ended waits for the gateway alone: the total time applies then. */
  overdue(now: number, state: State): Overdue | undefined {
    const { firstByteSeconds, idleSeconds, totalSeconds } = this.#limits
    if (now - this.#startedAt > totalSeconds) return 'total time'
    if (this.pausedAt !== undefined) return now - this.pausedAt > idleSeconds ? 'client' : undefined
    if (state === 'Connecting' || state === 'Waiting') return now - this.#startedAt > firstByteSeconds ? 'first byte' : undefined
    return state === 'Answering' && now - this.heardAt > idleSeconds ? 'silence' : undefined
  }

  /** Whether the client of a stream needs a sign of life. */
  isSilent(now: number): boolean {
    return this.pausedAt === undefined && now - this.wroteAt >= KEEP_ALIVE_TICKS
  }

  /** Whether the server has had a request for so long that its body is no longer kept for a second attempt. */
  isUnanswered(now: number): boolean {
    return this.sentAt !== undefined && now - this.sentAt >= SILENT_TICKS
  }
}
