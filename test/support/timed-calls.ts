/** Model calls of one key that go on until they are stopped, with the time and the tokens of every answer. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from './ask.ts'
import type { Lab } from './lab.ts'

/** One call; times are ms of `performance.now()`. */
export interface TimedAnswer {
  /** 0: no answer came. */
  readonly status: number
  readonly sentMs: number
  readonly answeredMs: number
  /** Of prompt and answer; 0 for a refusal. */
  readonly tokens: number
}

/** Pause between two calls to one gateway, ms: light, since the test shares the machine. */
const PAUSE_MS = 100
/** Only catches hangs. */
const ANSWER_WITHIN_MS = 20_000

/** Starts at once: one call at a time to each gateway. */
export class TimedCalls {
  readonly answers: TimedAnswer[] = []
  readonly #lab: Pick<Lab, 'record'>
  readonly #question: { readonly credential: string; readonly model: string }
  readonly #loops: readonly Promise<void>[]
  #isOver = false

  constructor(lab: Pick<Lab, 'record'>, urls: readonly string[], question: { readonly credential: string; readonly model: string }) {
    this.#lab = lab
    this.#question = question
    this.#loops = urls.map((url) => this.#loop(url))
  }

  /** Tokens of the calls that were answered before a moment. */
  tokensBefore(ms: number): number {
    return this.answers.reduce((sum, { answeredMs, tokens }) => sum + (answeredMs < ms ? tokens : 0), 0)
  }

  /** Ends them and waits for the last answers. */
  async stop(): Promise<readonly TimedAnswer[]> {
    this.#isOver = true
    await Promise.all(this.#loops)
    return this.answers
  }

  async #loop(url: string): Promise<void> {
    while (!this.#isOver) {
      const sentMs = performance.now()
      const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
      const { status, text } = await ask(this.#lab, url, { ...this.#question, signal }).catch(() => ({ status: 0, text: '' }))
      this.answers.push({ status, sentMs, answeredMs: performance.now(), tokens: status === 200 ? tokensOf(text) : 0 })
      await sleep(PAUSE_MS)
    }
  }
}

/** How often each status was answered. */
export function statusCounts(answers: readonly TimedAnswer[]): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** Most calls that were certainly admitted within one window: sent after its beginning, and answered before its end. */
export function mostAdmitted(answers: readonly TimedAnswer[], windowMs: number): number {
  const admitted = answers.filter(({ status }) => status === 200)
  const within = (fromMs: number): number =>
    admitted.filter(({ sentMs, answeredMs }) => sentMs >= fromMs && answeredMs < fromMs + windowMs).length
  return Math.max(0, ...admitted.map(({ sentMs }) => within(sentMs)))
}

function tokensOf(text: string): number {
  return (JSON.parse(text) as { usage: { total_tokens: number } }).usage.total_tokens
}
