/**
 * The process that makes and times the probes, and does nothing else: in the process that makes the storm, each answer would wait for the
 * storm's own work. It asks each gateway over one connection, in turn about all waiting keys: every 5 ms about the same key, but at most about
 * 400 times a second in all, since more questions would load the measured machine.
 *
 *   fork('probe-process.ts', ['<ProbeSite as JSON>'])
 */
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'undici'
import { KubeAdmin, type TestObject } from '../support/kube-admin.ts'
import { quantile } from './part.ts'
import { PROBE_DEADLINE_MS, type ProbedWrite, type ProbeReply, type ProbeRequest, type ProbeSite } from './prober.ts'

/** Time between two questions about the same key, ms. */
const ASK_EVERY_MS = 5
/** Shortest time between an answer of a gateway and the next question, ms. */
const PAUSE_MS = 2

/** What is asked with a key, and its answers before and after the write. */
interface Question {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body: string | null
  readonly before: number
  readonly after: number
}

interface Waiting {
  readonly credential: string
  readonly question: Question
  readonly deadline: number
  askedAt: number
  readonly resolve: (changedAt: number) => void
}

const { server, labDir, gateways, model } = JSON.parse(process.argv[2] ?? '') as ProbeSite // written by prober.ts
const MODELS: Question = { method: 'GET', path: '/v1/models', body: null, before: 200, after: 401 }
const ADMITTED: Question = { ...MODELS, before: 401, after: 200 }
const CALL: Question = { method: 'POST', path: '/v1/chat/completions', body: chatBody(), before: 402, after: 200 }

class GatewayPoll {
  readonly intervals: number[] = []
  readonly #gateway: Client
  readonly #waiting: Waiting[] = []
  #isRunning = false

  constructor(url: string) {
    this.#gateway = new Client(url)
  }

  /** @returns the time of the first answer after the write, on the clock of `performance`; Infinity without one within the deadline */
  change(credential: string, question: Question): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>()
    const now = performance.now()
    this.#waiting.push({ credential, question, deadline: now + PROBE_DEADLINE_MS, askedAt: now, resolve })
    if (!this.#isRunning) void this.#run()
    return promise
  }

  async status(credential: string, { method, path, body }: Question): Promise<number> {
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
    const answer = await this.#gateway.request({ path, method, headers, body })
    await answer.body.dump()
    return answer.statusCode
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
    const status = await this.status(one.credential, one.question)
    const now = performance.now()
    this.intervals.push(now - one.askedAt)
    one.askedAt = now
    if (status === one.question.after) one.resolve(now)
    else if (now > one.deadline) one.resolve(Number.POSITIVE_INFINITY)
    else this.#waiting.push(one)
  }
}

const kube = new KubeAdmin(server, labDir)
const polls = gateways.map((url) => new GatewayPoll(url))
const ended: string[] = []

const QUESTIONS: Readonly<Record<ProbedWrite['do'], Question>> = {
  suspend: MODELS,
  delete: MODELS,
  pay: CALL,
  issue: ADMITTED,
  rotate: ADMITTED,
}

async function probe({ credential, write }: Exclude<ProbeRequest, 'close'>): Promise<number> {
  if (write.do === 'issue') return await issue(write.object, write.secret)
  const question = QUESTIONS[write.do]
  for (const poll of polls) {
    const status = await poll.status(credential, question)
    if (status !== question.before) throw new Error(`a gateway answered ${status} before the ${write.do}`)
  }
  await make(write)
  const answered = performance.now()
  const changedAt = Math.max(...(await Promise.all(polls.map((poll) => poll.change(credential, question)))))
  if (question === MODELS) ended.push(credential)
  return Math.min(changedAt - answered, PROBE_DEADLINE_MS)
}

async function issue(object: TestObject, secret: string): Promise<number> {
  await kube.create(object)
  const answered = performance.now()
  const credential = await valueIn(secret, answered + PROBE_DEADLINE_MS)
  if (credential === undefined) return PROBE_DEADLINE_MS
  const admittedAt = Math.max(...(await Promise.all(polls.map((poll) => poll.change(credential, ADMITTED)))))
  return Math.min(admittedAt - answered, PROBE_DEADLINE_MS)
}

/** @returns undefined without a value until the deadline */
async function valueIn(secret: string, deadline: number): Promise<string | undefined> {
  for (; performance.now() < deadline; await sleep(ASK_EVERY_MS)) {
    const found = await kube.get(secret)
    const text = (found?.data as Record<string, string> | undefined)?.['SERVICE_API_KEY']
    if (text !== undefined) return Buffer.from(text, 'base64').toString()
  }
  return undefined
}

async function make(write: Exclude<ProbedWrite, { do: 'issue' }>): Promise<void> {
  if (write.do === 'pay') await kube.create(write.object)
  else if (write.do === 'rotate') await kube.merge(write.path, { spec: { source: { hash: { sha256: write.sha256 } } } })
  else if (write.do === 'delete') await kube.remove(write.path)
  else await kube.merge(write.path, { spec: { state: 'Suspended' } })
}

function chatBody(): string {
  return JSON.stringify({ model: model?.name, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1 })
}

/** Answers every call at once, for nothing. */
function serveModel({ ip, port, name }: NonNullable<ProbeSite['model']>): void {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const answer = JSON.stringify({ id: 'chatcmpl-probe', object: 'chat.completion', created: 1_790_000_000, model: name, choices, usage })
  const listener = createServer((request, response) => {
    request.resume()
    request.once('end', () => response.setHeader('content-type', 'application/json').end(answer))
  })
  listener.listen(port, ip)
}

async function close(): Promise<ProbeReply> {
  let admittedAgain = 0
  for (const credential of ended) for (const poll of polls) admittedAgain += (await poll.status(credential, MODELS)) === 200 ? 1 : 0
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
  process.send?.(await probe(request).then((ms): ProbeReply => ({ id, ms }), failed))
}

if (model) serveModel(model)
process.on('message', (message) => void handle(message as ProbeRequest)) // only prober.ts sends to it
