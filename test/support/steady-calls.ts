/** A light stream of calls during a test, and their answers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, type WireFormat } from './ask.ts'
import type { Lab } from './lab.ts'

/** One kind of call; `name` begins its line in the counts. */
interface SteadyCaller {
  readonly name: string
  readonly credential: string
  readonly model: string
  readonly format?: WireFormat
}

/** One call; times are ms of `performance.now()`. */
export interface SteadyAnswer {
  readonly name: string
  /** 0: no answer came. */
  readonly status: number
  readonly text: string
  readonly sentMs: number
  readonly answeredMs: number
}

/** Pause between two calls of one caller to one gateway, ms: light, since other tests share the machine. */
const PAUSE_MS = 60
/** Only catches hangs. */
const ANSWER_WITHIN_MS = 20_000

export class SteadyCalls {
  readonly answers: SteadyAnswer[] = []
  readonly #loops: Promise<void>[]
  #isOver = false

  /** Starts at once: each caller calls each gateway, one call at a time. */
  constructor(lab: Pick<Lab, 'record'>, urls: readonly string[], callers: readonly SteadyCaller[]) {
    this.#loops = urls.flatMap((url) => callers.map((caller) => this.#loop(lab, url, caller)))
  }

  /** `name status` → how often so far, sorted by name; `name none` for calls that got no answer. */
  get counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const line of this.answers.map(({ name, status }) => `${name} ${status || 'none'}`).toSorted())
      counts[line] = (counts[line] ?? 0) + 1
    return counts
  }

  async stop(): Promise<Readonly<Record<string, number>>> {
    this.#isOver = true
    await Promise.all(this.#loops)
    return this.counts
  }

  async #loop(lab: Pick<Lab, 'record'>, url: string, { name, ...question }: SteadyCaller): Promise<void> {
    while (!this.#isOver) {
      const sentMs = performance.now()
      const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
      const call = ask(lab, url, { ...question, fields: { max_tokens: 1 }, signal })
      const { status, text } = await call.catch(() => ({ status: 0, text: '' }))
      this.answers.push({ name, status, text, sentMs, answeredMs: performance.now() })
      await sleep(PAUSE_MS)
    }
  }
}
