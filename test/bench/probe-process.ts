/**
 * The process that makes and times the probes, and does nothing else: in the process that makes the storm, each answer would wait for the
 * storm's own work. It asks each gateway over one connection, in turn about all waiting keys: every 5 ms about the same key, but at most about
 * 400 times a second in all, since more questions would load the measured machine.
 *
 *   fork('probe-process.ts', ['<ProbeSite as JSON>'])
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'undici'
import { KubeAdmin } from '../support/kube-admin.ts'
import { quantile } from './part.ts'
import { PROBE_DEADLINE_MS, type ProbeReply, type ProbeRequest, type ProbeSite } from './prober.ts'

/** Time between two questions about the same key, ms. */
const ASK_EVERY_MS = 5
/** Shortest time between an answer of a gateway and the next question, ms. */
const PAUSE_MS = 2

interface Waiting {
  readonly credential: string
  readonly deadline: number
  askedAt: number
  readonly resolve: (refusedAt: number) => void
}

class GatewayPoll {
  readonly intervals: number[] = []
  readonly #gateway: Client
  readonly #waiting: Waiting[] = []
  #isRunning = false

  constructor(url: string) {
    this.#gateway = new Client(url)
  }

  /** @returns the time of the first refusal, on the clock of `performance`; Infinity without a refusal within the deadline */
  refusal(credential: string): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>()
    const now = performance.now()
    this.#waiting.push({ credential, deadline: now + PROBE_DEADLINE_MS, askedAt: now, resolve })
    if (!this.#isRunning) void this.#run()
    return promise
  }

  async status(credential: string): Promise<number> {
    const headers = { authorization: `Bearer ${credential}` }
    const { statusCode, body } = await this.#gateway.request({ path: '/v1/models', method: 'GET', headers })
    await body.dump()
    return statusCode
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await this.#ask(next)
      await sleep(Math.max(PAUSE_MS, ASK_EVERY_MS / Math.max(1, this.#waiting.length)))
    }
    this.#isRunning = false
  }

  async #ask(one: Waiting): Promise<void> {
    const status = await this.status(one.credential)
    const now = performance.now()
    this.intervals.push(now - one.askedAt)
    one.askedAt = now
    if (status === 401) one.resolve(now)
    else if (now > one.deadline) one.resolve(Number.POSITIVE_INFINITY)
    else this.#waiting.push(one)
  }
}

const { server, labDir, gateways } = JSON.parse(process.argv[2] ?? '') as ProbeSite // written by prober.ts
const kube = new KubeAdmin(server, labDir)
const polls = gateways.map((url) => new GatewayPoll(url))
const ended: string[] = []

async function end({ path, credential, ending }: Exclude<ProbeRequest, 'close'>): Promise<number> {
  for (const poll of polls) {
    const status = await poll.status(credential)
    if (status !== 200) throw new Error(`a gateway answered ${status} before the ${ending}`)
  }
  await (ending === 'delete' ? kube.remove(path) : kube.merge(path, { spec: { state: 'Suspended' } }))
  const answered = performance.now()
  const refusedAt = Math.max(...(await Promise.all(polls.map((poll) => poll.refusal(credential)))))
  ended.push(credential)
  return Math.min(refusedAt - answered, PROBE_DEADLINE_MS)
}

async function close(): Promise<ProbeReply> {
  let admittedAgain = 0
  for (const credential of ended) for (const poll of polls) admittedAgain += (await poll.status(credential)) === 200 ? 1 : 0
  return {
    resolutionMs: quantile(
      polls.flatMap(({ intervals }) => intervals),
      0.99,
    ),
    admittedAgain,
  }
}

async function handle(request: ProbeRequest): Promise<void> {
  if (request === 'close') {
    process.send?.(await close())
    return process.exit(0)
  }
  const { id } = request
  const failed = (error: unknown): ProbeReply => ({ id, error: error instanceof Error ? error.message : String(error) })
  process.send?.(await end(request).then((ms): ProbeReply => ({ id, ms }), failed))
}

process.on('message', (message) => void handle(message as ProbeRequest)) // only prober.ts sends to it
