/**
 * One gateway in a memory cgroup of the chart's limit, on a core of its own. Hostile callers and model servers run on the other core, beside
 * 50 well-behaved clients with keys of their own. No attack may end the gateway or slow down those clients.
 */
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Agent, request } from 'undici'
import { RedisConnection } from '../../gateway/process/redis.ts'
import { encodeKeyRecord } from '../../gateway/shared/key-record.ts'
import { encodeModelRecord } from '../../gateway/shared/model-record.ts'
import { RedisProjectionStore } from '../../operator/projection/redis-projection-store.ts'
import { startStubModel } from '../../standalone/stub-model.ts'
import { freePorts } from '../support/free-port.ts'
import { ManagedProcess } from '../support/managed-process.ts'
import { type IssuedKey, issuedKey, writer } from '../support/records.ts'
import { RedisPart } from '../support/redis-part.ts'
import { waitFor } from '../support/wait-for.ts'
import { type AttackOrder, type AttackPorts, ATTACKS, type AttackSite } from './attack-protocol.ts'
import { CONTENDER_CORE } from './contenders.ts'
import type { ColdStartSite } from './cold-start.ts'
import { type PartResult, type Progress, skippedPart } from './operator-parts.ts'
import { type Bound, compared } from './operator-report.ts'
import { memory, toMib } from './proc.ts'
import { quantile } from './statistics.ts'
import { table } from './table.ts'

const CGROUP = `/sys/fs/cgroup/memory/headgate-attacks-${process.pid}`
/** The chart's limit of a gateway pod. */
const MEMORY_BYTES = 2 ** 30
const CLIENTS = 50
const PAUSE_MS = 200
const RECOVERY_MS = 5_000
/** So many models make `/v1/models` expensive. */
const VISIBLE_MODELS = 2_000
/** p99 of the well-behaved clients during an attack, as a multiple of their p99 without one. */
const P99_RATIO: Bound = { name: 'p99', unit: '', must: 5, aim: 2 }
const MOST_SHED = 0.001

/** What the well-behaved clients saw during one attack. */
interface Seen {
  readonly attack: string
  readonly times: readonly number[]
  /** Number of calls that failed otherwise than by row 25. */
  readonly failed: number
  /** Number of calls that the gateway refused because of load (row 25). */
  readonly shed: number
  readonly rssMib: number
  readonly inFlightAfter: number
}

interface Running {
  readonly gateway: ManagedProcess
  readonly api: string
  readonly metrics: string
  readonly clients: readonly IssuedKey[]
  order(order: AttackOrder): void
}

/** @param seconds of each attack */
export async function attacksPart(site: ColdStartSite, seconds: number, say: Progress): Promise<PartResult> {
  if (!hasMemoryCgroup()) return skippedPart('attacks', 'no memory cgroup can be made here (cgroup v1, root)')
  const stops: (() => unknown)[] = [() => rmdirSync(CGROUP)]
  try {
    const running = await start(site, stops)
    const seen: Seen[] = []
    for (const attack of ['nothing', ...ATTACKS, 'all together'] as const) {
      const result = await during(running, attack, seconds)
      say(
        `  ${attack}: p99 ${quantile(result.times, 0.99).toFixed(0)} ms of ${result.times.length} calls, ${result.failed} failed, ${result.shed} shed`,
      )
      seen.push(result)
    }
    return report(seen, running.gateway.running)
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

function hasMemoryCgroup(): boolean {
  try {
    mkdirSync(CGROUP)
    writeFileSync(join(CGROUP, 'memory.limit_in_bytes'), String(MEMORY_BYTES))
    return true
  } catch {
    return false
  }
}

async function start({ ip, folder }: ColdStartSite, stops: (() => unknown)[]): Promise<Running> {
  const [port = 0, metricsPort = 0] = await freePorts(2)
  const redis = await RedisPart.start(join(folder, 'redis-attacks'), ip)
  stops.push(() => redis.stop())
  const good = await startStubModel({ host: ip })
  stops.push(() => good.close())
  const clients = Array.from({ length: CLIENTS }, (_, i) => issuedKey(`client-${i}`, { ns: 'well-behaved', models: [['good']] }))
  const attacker = issuedKey('attacker', { ns: 'attackers', models: [['*']] })
  const workerData: AttackSite = { host: ip, port, credential: attacker.credential }
  const thread = new Worker(new URL('./attack-thread.ts', import.meta.url), { workerData })
  stops.push(() => thread.terminate())
  const [ports] = (await once(thread, 'message')) as [AttackPorts]
  const models = Object.entries({ good: good.port, loop: port, ...ports }).map(([name, at]) => model(name, `${ip}:${at}`))
  const crowd = Array.from({ length: VISIBLE_MODELS }, (_, i) => model(`model-${i}`, `${ip}:9`))
  await fill(redis, [...clients, attacker], [...models, ...crowd])

  const gateway = gatewayProcess(folder, { ...redis.envFor('gateway'), PORT: String(port), METRICS_PORT: String(metricsPort) })
  await gateway.start()
  stops.push(() => gateway.stop())
  const metrics = `http://${ip}:${metricsPort}`
  await waitFor('the gateway to be ready', async () => (await fetch(`${metrics}/readyz`)).ok)
  return { gateway, api: `http://${ip}:${port}`, metrics, clients, order: (order) => thread.postMessage(order) }
}

/** The gateway on a core of its own, in the cgroup from its first instruction on. */
function gatewayProcess(folder: string, env: Readonly<Record<string, string>>): ManagedProcess {
  const inCgroup = `echo $$ > ${join(CGROUP, 'cgroup.procs')} && exec "$@"`
  const argv = ['sh', '-c', inCgroup, 'sh', 'taskset', '-c', String(CONTENDER_CORE), process.execPath, join(folder, 'dist/gateway.js')]
  const logFile = join(folder, 'gateway-attacks.log')
  return new ManagedProcess({ name: 'gateway-attacks', argv, env: { POD_NAME: 'bench', NODE_ENV: 'production', ...env }, logFile })
}

function model(name: string, endpoint: string): { readonly uid: string; readonly text: string } {
  const backend = {
    name: 'one',
    eps: [endpoint],
    svc: null,
    url: null,
    model: name,
    w: 1,
    messages: 'Native',
    auth: null,
    formerAuth: null,
  } as const
  const record = { v: 1, rev: 0, uid: name, ns: 'attackers', name, created: 0, served: name, aliases: [], allow: '*' } as const
  const text = encodeModelRecord({
    ...record,
    aliases: [],
    to: { first: 10, idle: 5, total: 60 },
    backends: [{ ...backend, eps: [endpoint] }],
  })
  return { uid: name, text }
}

async function fill(redis: RedisPart, keys: readonly IssuedKey[], models: readonly { uid: string; text: string }[]): Promise<void> {
  const { REDIS_URL, REDIS_USERNAME, REDIS_PASSWORD } = redis.envFor('operator')
  const settings = { url: REDIS_URL, username: REDIS_USERNAME, password: REDIS_PASSWORD }
  const store = new RedisProjectionStore(new RedisConnection(settings, 'bench', { commandMs: 10_000 }), 'hg')
  try {
    await store.rebuild(writer(), 'bench', 1, [
      ...keys.map(({ record }) => ({ kind: 'key', op: 'put', id: record.uid, text: encodeKeyRecord(record) }) as const),
      ...models.map(({ uid, text }) => ({ kind: 'model', op: 'put', id: uid, text }) as const),
    ])
  } finally {
    await store.close()
  }
}

async function during(running: Running, attack: AttackOrder['start'], seconds: number): Promise<Seen> {
  const end = performance.now() + seconds * 1_000
  const times: number[] = []
  const counts = { failed: 0, shed: 0 }
  const agent = new Agent()
  const client = async ({ credential }: IssuedKey, index: number): Promise<void> => {
    await sleep((PAUSE_MS * index) / CLIENTS)
    while (performance.now() < end) {
      const started = performance.now()
      const outcome = await callOnce(running.api, credential, agent)
      times.push(performance.now() - started)
      if (outcome !== 'answered') counts[outcome] += 1
      await sleep(PAUSE_MS)
    }
  }
  running.order({ start: attack })
  await Promise.all(running.clients.map(client))
  const rssMib = running.gateway.running ? toMib(memory([running.gateway.pid]).rssMb) : NaN
  running.order({ start: 'nothing' })
  await agent.destroy()
  await sleep(RECOVERY_MS)
  return { attack, times, ...counts, rssMib, inFlightAfter: await inFlight(running.metrics) }
}

async function callOnce(api: string, credential: string, dispatcher: Agent): Promise<'answered' | 'failed' | 'shed'> {
  const body = JSON.stringify({ model: 'good', max_tokens: 5, messages: [{ role: 'user', content: 'Say something.' }] })
  const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
  try {
    const answer = await request(`${api}/v1/chat/completions`, { method: 'POST', headers, body, dispatcher })
    const text = await answer.body.text()
    if (answer.statusCode === 200) return 'answered'
    return answer.statusCode === 503 && text.includes('overloaded') ? 'shed' : 'failed'
  } catch {
    return 'failed'
  }
}

async function inFlight(metrics: string): Promise<number> {
  const text = await fetch(`${metrics}/metrics`).then(
    (answer) => answer.text(),
    () => '',
  )
  return Number(/^headgate_requests_in_flight (\d+)/m.exec(text)?.[1] ?? NaN)
}

const isUnharmed = ({ failed, shed, times, inFlightAfter }: Seen): boolean =>
  failed === 0 && shed <= MOST_SHED * times.length && inFlightAfter === 0

function report(seen: readonly Seen[], isRunning: boolean): PartResult {
  const undisturbed = quantile(seen[0]?.times ?? [], 0.99)
  const ratioOf = ({ times }: Seen): number => quantile(times, 0.99) / undisturbed
  const rows = seen.map((one) => {
    const figures = [
      quantile(one.times, 0.5).toFixed(1),
      quantile(one.times, 0.99).toFixed(1),
      ratioOf(one).toFixed(1),
      one.rssMib.toFixed(0),
    ]
    return [one.attack, ...[one.times.length, one.failed, one.shed].map(String), ...figures, String(one.inFlightAfter)]
  })
  const head = [
    'attack',
    'calls',
    'failed',
    'row 25',
    'p50 ms',
    'p99 ms',
    'p99 ratio',
    'RSS MiB',
    `in flight ${RECOVERY_MS / 1000} s later`,
  ]
  const attacks = seen.slice(1)
  const worst = Math.max(...attacks.map(ratioOf))
  const oomKills = Number(/oom_kill (\d+)/.exec(readFileSync(join(CGROUP, 'memory.oom_control'), 'utf8'))?.[1] ?? 0)
  const areUnharmed = attacks.every(isUnharmed)
  const text = [
    `attacks: one gateway with ${MEMORY_BYTES / 2 ** 20} MiB on one core, ${CLIENTS} well-behaved clients beside each attack`,
    ...table([head, ...rows]),
    `  the process ${isRunning ? 'still runs' : 'has ENDED'}; killed for memory: ${oomKills}`,
    `  every call answered, at most 0.1 % shed, nothing left in flight: ${areUnharmed ? 'held' : 'MISSED'}`,
    `  worst p99, as a multiple of the p99 without an attack: ${compared(P99_RATIO, worst)}`,
  ].join('\n')
  return { text, isMissed: !isRunning || oomKills > 0 || !areUnharmed || worst > P99_RATIO.must, data: seen }
}
