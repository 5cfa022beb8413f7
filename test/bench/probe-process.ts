/**
 * The process that makes and times the probes, and does nothing else: in the process that makes the storm, each answer would wait for the
 * storm's own work. The process takes `ProbeRequest`s from its parent and asks each gateway over one connection, in turn about all waiting keys:
 * every 5 ms about the same key, but at most about 400 times a second in all, since more questions would load the measured machine.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'undici'
import { KubeAdmin } from '../support/kube-admin.ts'
import { PROBE_DEADLINE_MS, type Probe, type ProbeReply, type ProbeRequest } from './probe-protocol.ts'
import { quantile } from './statistics.ts'

/** Time between two questions about the same key, ms. */
const ASK_EVERY_MS = 5
/** Shortest time between an answer of a gateway and the next question, ms. */
const PAUSE_MS = 2
const REFUSED = 401
const ADMITTED = 200

type Open = Extract<ProbeRequest, { do: 'open' }>
type Start = Extract<ProbeRequest, { do: 'probe' }>

interface Waiting {
  readonly credential: string
  readonly deadline: number
  askedAt: number
  readonly resolve: (refusedAt: number | undefined) => void
}

/** Asks one gateway about the waiting keys. */
class GatewayPoll {
  readonly intervals: number[] = []
  questions = 0
  readonly #gateway: Client
  readonly #waiting: Waiting[] = []
  #running = false

  constructor(url: string) {
    this.#gateway = new Client(url)
  }

  /** @returns the time at which the gateway refused the key, on the clock of `performance`; undefined without a refusal within the deadline */
  refusal(credential: string): Promise<number | undefined> {
    const { promise, resolve } = Promise.withResolvers<number | undefined>()
    const now = performance.now()
    this.#waiting.push({ credential, deadline: now + PROBE_DEADLINE_MS, askedAt: now, resolve })
    if (!this.#running) void this.#run()
    return promise
  }

  async status(credential: string): Promise<number> {
    this.questions += 1
    const { statusCode, body } = await this.#gateway.request({
      path: '/v1/models',
      method: 'GET',
      headers: { authorization: `Bearer ${credential}` },
    })
    await body.dump()
    return statusCode
  }

  close(): Promise<void> {
    return this.#gateway.close()
  }

  async #run(): Promise<void> {
    this.#running = true
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await this.#ask(next)
      await sleep(Math.max(PAUSE_MS, ASK_EVERY_MS / Math.max(1, this.#waiting.length)))
    }
    this.#running = false
  }

  async #ask(one: Waiting): Promise<void> {
    const status = await this.status(one.credential)
    const now = performance.now()
    this.intervals.push(now - one.askedAt)
    one.askedAt = now
    if (status === REFUSED) one.resolve(now)
    else if (now > one.deadline) one.resolve(undefined)
    else this.#waiting.push(one)
  }
}

class Prober {
  readonly #kube: KubeAdmin
  readonly #polls: readonly GatewayPoll[]
  readonly #ended: string[] = []
  #waiting = 0
  #mostWaiting = 0

  constructor({ server, labDir, gateways }: Open) {
    this.#kube = new KubeAdmin(server, labDir)
    this.#polls = gateways.map((url) => new GatewayPoll(url))
  }

  /** @throws when a gateway does not admit the key before the change */
  async probe({ path, credential, change }: Start): Promise<Probe> {
    for (const poll of this.#polls) {
      const status = await poll.status(credential)
      if (status !== ADMITTED) throw new Error(`a gateway answered ${status} before the ${change}`)
    }
    const asked = performance.now()
    await (change === 'delete' ? this.#kube.remove(path) : this.#kube.merge(path, { spec: { state: 'Suspended' } }))
    const answered = performance.now()
    this.#mostWaiting = Math.max(this.#mostWaiting, ++this.#waiting)
    const refusals = await Promise.all(this.#polls.map((poll) => poll.refusal(credential)))
    this.#waiting -= 1
    this.#ended.push(credential)
    const times = refusals.map((refusedAt) => (refusedAt === undefined ? undefined : refusedAt - answered))
    const isRefused = times.every((ms) => ms !== undefined)
    return { change, ms: isRefused ? Math.max(...times) : null, writeMs: answered - asked }
  }

  async close(): Promise<ProbeReply> {
    let admittedAgain = 0
    for (const credential of this.#ended) {
      for (const poll of this.#polls) admittedAgain += (await poll.status(credential)) === ADMITTED ? 1 : 0
    }
    const intervals = this.#polls.flatMap((poll) => poll.intervals)
    const questions = this.#polls.reduce((sum, poll) => sum + poll.questions, 0)
    await Promise.all([this.#kube.close(), ...this.#polls.map((poll) => poll.close())])
    return { reply: 'closed', mostWaiting: this.#mostWaiting, resolutionMs: quantile(intervals, 0.99), questions, admittedAgain }
  }
}

let prober: Prober | undefined

async function handle(request: ProbeRequest): Promise<void> {
  if (request.do === 'open') {
    prober = new Prober(request)
    return
  }
  if (!prober) throw new Error('the first message must be "open"')
  if (request.do === 'probe') {
    const { id } = request
    const failed = (error: unknown): ProbeReply => ({ reply: 'failed', id, why: error instanceof Error ? error.message : String(error) })
    process.send?.(await prober.probe(request).then((probe): ProbeReply => ({ reply: 'probe', id, ...probe }), failed))
    return
  }
  process.send?.(await prober.close())
  process.disconnect()
}

process.on('message', (message) => void handle(message as ProbeRequest)) // only prober.ts sends to it
