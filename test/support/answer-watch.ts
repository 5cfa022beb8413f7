/** Asks the gateways about credentials repeatedly during an event, and keeps every unexpected answer. */
import { setTimeout as sleep } from 'node:timers/promises'
import { answerOf } from './gateway-answers.ts'
import type { Program } from './program.ts'

export interface ExpectedAnswer {
  readonly name: string
  readonly credential: string
  readonly status: number
}

/** Unexpected answers that are kept word for word; the rest is counted. */
const KEPT = 20

/** Requests at a steady rate until `stop`, round robin over credentials and gateways. An unreachable gateway is not an unexpected answer. */
export class AnswerWatch {
  readonly #surprises: string[] = []
  readonly #counts = new Map<number, number>()
  readonly #abort = new AbortController()
  readonly #loop: Promise<void>
  readonly #open = new Set<Promise<void>>()

  /** @param gateways read before each request, so that pods may start and end */
  constructor(gateways: () => readonly Program[], expected: readonly ExpectedAnswer[], perSecond = 100) {
    this.#loop = this.#run(gateways, expected, 1000 / perSecond)
  }

  /** Number of answers so far by status; 0 counts the requests without an answer. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts)
  }

  /** Stops asking. @returns `name at pod: status after n ms` of the unexpected answers: the first 20 and the number of the others */
  async stop(isTolerated: (line: string) => boolean = () => false): Promise<string[]> {
    this.#abort.abort()
    await this.#loop
    await Promise.all(this.#open)
    const surprises = this.#surprises.filter((line) => !isTolerated(line))
    const more = surprises.length - KEPT
    return more > 0 ? [...surprises.slice(0, KEPT), `and ${more} more`] : surprises
  }

  async #run(gateways: () => readonly Program[], expected: readonly ExpectedAnswer[], everyMs: number): Promise<void> {
    const started = performance.now()
    for (let asked = 0; !this.#abort.signal.aborted; asked++) {
      const pods = gateways()
      const index = asked % expected.length
      const question = expected[index]
      const gateway = pods[(index + Math.floor(asked / expected.length)) % pods.length]
      if (question && gateway) this.#ask(gateway, question, started)
      await sleep(Math.max(0, started + (asked + 1) * everyMs - performance.now()))
    }
  }

  #ask(gateway: Program, { name, credential, status }: ExpectedAnswer, started: number): void {
    const at = Math.round(performance.now() - started)
    const asking = answerOf(gateway, credential).then((answer) => {
      this.#counts.set(answer, (this.#counts.get(answer) ?? 0) + 1)
      if (answer !== status && answer !== 0) this.#surprises.push(`${name} at ${gateway.spec.pod}: ${answer} after ${at} ms`)
      this.#open.delete(asking)
    })
    this.#open.add(asking)
  }
}
