/** A light stream of calls during a failure, and the counts of the answers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, type WireFormat } from './ask.ts'
import type { Lab } from './lab.ts'

/** One kind of call; `name` begins its line in the counts. */
export interface SteadyCaller {
  readonly name: string
  readonly credential: string
  readonly model: string
  readonly format?: WireFormat
}

/** Pause between two calls of one caller to one gateway, ms: light, since other tests share the machine. */
const PAUSE_MS = 60
/** Only catches hangs: a call without an answer shows as `none`. */
const ANSWER_WITHIN_MS = 20_000

/** Calls that go on until `stop`. */
export class SteadyCalls {
  readonly #counts = new Map<string, number>()
  readonly #loops: Promise<void>[]
  #isOver = false

  /** Starts at once: each caller calls each gateway, one call at a time. */
  constructor(lab: Pick<Lab, 'record'>, urls: readonly string[], callers: readonly SteadyCaller[]) {
    this.#loops = urls.flatMap((url) => callers.map((caller) => this.#loop(lab, url, caller)))
  }

  /** `name status` → how often so far; `name none` for calls that got no answer. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** Stops the calls and waits for the last answers. */
  async stop(): Promise<Readonly<Record<string, number>>> {
    this.#isOver = true
    await Promise.all(this.#loops)
    return this.counts
  }

  async #loop(lab: Pick<Lab, 'record'>, url: string, { name, ...question }: SteadyCaller): Promise<void> {
    while (!this.#isOver) {
      const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
      const status = await ask(lab, url, { ...question, fields: { max_tokens: 1 }, signal }).then(
        (answer) => String(answer.status),
        () => 'none',
      )
      this.#counts.set(`${name} ${status}`, (this.#counts.get(`${name} ${status}`) ?? 0) + 1)
      await sleep(PAUSE_MS)
    }
  }
}
