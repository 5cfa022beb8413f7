/**
 * One gateway in a memory cgroup of the chart's limit, on a core of its own. Hostile callers and model servers run on the other core, beside
 * 50 well-behaved clients with keys of their own.
 */
import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent } from 'undici'
import { CALL_ROUTES } from '#contract/values/call-routes.ts'
import { startStubModel } from '../../../examples/stub-model/stub-model.ts'
import { checkedStreamsEnv } from '../checked-streams.ts'
import { freePorts } from '../free-port.ts'
import { imageFlags } from '../image-flags.ts'
import { ManagedProcess } from '../managed-process.ts'
import { backendRecord, type IssuedKey, issuedKey, modelText, recordText, writer } from '../records.ts'
import { redisStore } from '../redis-gateway.ts'
import { RedisPart } from '../redis-part.ts'
import { waitFor } from '../wait-for.ts'
import { type AttackOrder, type AttackPorts, type AttackSite, SILENT_NAMES, TRANSLATED_MODELS } from './attack-protocol.ts'
import { callAll, type Calls } from './well-behaved-clients.ts'

const CGROUP = `/sys/fs/cgroup/memory/headgate-attacks-${process.pid}`
/** The chart's limit of a gateway pod. */
export const MEMORY_BYTES = 2 ** 30
export const CLIENTS = 50
const DIRECT_CLIENTS = 10
/** In-flight requests and memory are back to normal after this. */
export const RECOVERY_MS = 5_000
/** Only catches requests that stay, ms. */
const STRAGGLING_MS = 60_000
const VISIBLE_MODELS = 2_000
const GATEWAY_CORE = 0
/** Core of everything else. Clients, attackers, model servers and Redis stand for other machines, and must not use the core of the gateway. */
const CALLERS_CORE = 1

export interface UnderAttack extends Calls {
  readonly attack: AttackOrder['start']
  readonly directTimes: readonly number[]
  readonly rssBytes: number
  readonly inFlightAfter: number
  readonly heapBytesAfter: number
  /** Number of sound files that the slow model server has answered since the start of the gateway. */
  readonly filesAnswered: number
  /** Number of translated requests with a large image that were answered since the start of the gateway. */
  readonly imagesAnswered: number
}

export interface AttackedSite {
  readonly ip: string
  readonly folder: string
}

export function missingForAttacks(): string | undefined {
  try {
    makeCgroup()
    rmdirSync(CGROUP)
    return undefined
  } catch {
    return 'no memory cgroup can be made here (cgroup v1, root)'
  }
}

/** A cgroup that a killed run has left is used again. */
function makeCgroup(): void {
  mkdirSync(CGROUP, { recursive: true })
  writeFileSync(join(CGROUP, 'memory.limit_in_bytes'), String(MEMORY_BYTES))
}

export class AttackedGateway {
  readonly #site: AttackedSite
  readonly #stops: (() => unknown)[] = [() => rmdirSync(CGROUP)]
  readonly #clients = Array.from({ length: CLIENTS }, (_, i) => issuedKey(`client-${i}`, { namespace: 'well-behaved', models: [['good']] }))
  readonly #agent = new Agent()
  #attackers: ChildProcess | undefined
  #gateway: ManagedProcess | undefined
  #api = ''
  #metrics = ''
  #model = ''

  private constructor(site: AttackedSite) {
    this.#site = site
  }

  static async start(site: AttackedSite): Promise<AttackedGateway> {
    const attacked = new AttackedGateway(site)
    try {
      await attacked.#start()
      return attacked
    } catch (error) {
      await attacked.stop()
      throw error
    }
  }

  async stop(): Promise<void> {
    await this.#agent.destroy()
    for (const stop of this.#stops.splice(0).reverse()) await stop()
  }

  get isRunning(): boolean {
    return this.#gateway?.running === true
  }

  get oomKills(): number {
    return Number(/oom_kill (\d+)/.exec(readFileSync(join(CGROUP, 'memory.oom_control'), 'utf8'))?.[1] ?? 0)
  }

  /**
   * Runs one attack beside the well-behaved clients, and reads the state of the gateway 5 s after its end: later on a busy machine, where the
   * connections of the attack take longer to close.
   */
  async during(attack: AttackOrder['start'], seconds: number): Promise<UnderAttack> {
    this.#order({ start: attack })
    const [calls, direct] = await Promise.all([
      callAll(this.#api, this.#clients, seconds * 1_000, this.#agent),
      callAll(this.#model, this.#clients.slice(0, DIRECT_CLIENTS), seconds * 1_000, this.#agent),
    ])
    const rssBytes = this.isRunning ? rssOf(this.#gateway?.pid ?? 0) : NaN
    this.#order({ start: 'nothing' })
    await sleep(RECOVERY_MS)
    await waitFor('no request to be in flight', async () => (await this.#inFlight()) === 0, { deadlineMs: STRAGGLING_MS }).catch(
      () => undefined,
    ) // reported below
    return {
      attack,
      ...calls,
      directTimes: direct.times,
      rssBytes,
      inFlightAfter: await this.#inFlight(),
      heapBytesAfter: await this.#heap(),
      filesAnswered: await this.#metric(/^headgate_requests_total\{route="\/v1\/audio\/transcriptions",.*status="2xx".*\} (\d+)/m, 0),
      imagesAnswered: await this.#metric(/^headgate_requests_total\{.*model="images",.*status="2xx".*\} (\d+)/m, 0),
    }
  }

  async #start(): Promise<void> {
    const { ip, folder } = this.#site
    makeCgroup()
    this.#stops.push(pinThisProcess(CALLERS_CORE))
    const [port = 0, metricsPort = 0] = await freePorts(2)
    const redis = await RedisPart.start(join(folder, 'redis-attacks'), ip)
    this.#stops.push(() => redis.stop())
    const good = await startStubModel({ host: ip })
    this.#stops.push(() => good.close())
    const attacker = issuedKey('attacker', { namespace: 'attackers', models: [['*']] })
    const ports = await this.#startAttackers({ host: ip, port, credential: attacker.credential })
    await fill(redis, [...this.#clients, attacker], models(ip, { good: good.port, loop: port, ...ports }))
    const gateway = this.#process({ ...redis.envFor('gateway'), PORT: String(port), METRICS_PORT: String(metricsPort) })
    await gateway.start()
    this.#stops.push(() => gateway.stop())
    this.#gateway = gateway
    this.#api = `http://${ip}:${port}`
    this.#model = `http://${ip}:${good.port}`
    this.#metrics = `http://${ip}:${metricsPort}`
    await waitFor('the gateway to be ready', async () => (await fetch(`${this.#metrics}/readyz`)).ok)
  }

  async #startAttackers(site: AttackSite): Promise<AttackPorts> {
    const attackers = fork(join(import.meta.dirname, 'attackers.ts'), [JSON.stringify(site)], { execArgv: [] })
    this.#stops.push(() => attackers.kill())
    this.#attackers = attackers
    const [ports] = (await once(attackers, 'message')) as [AttackPorts]
    return ports
  }

  /** The gateway on a core of its own, in the cgroup from its first instruction on, with a name server that never answers. */
  #process(env: Readonly<Record<string, string>>): ManagedProcess {
    const { ip, folder } = this.#site
    const resolvConf = join(folder, 'attacks-resolv.conf')
    writeFileSync(resolvConf, `nameserver ${ip}\n`)
    const inCgroup = `echo $$ > "$1/cgroup.procs" && mount --bind "$2" /etc/resolv.conf && shift 2 && exec "$@"`
    const probe = ['--expose-gc', '--import', join(import.meta.dirname, 'heap-probe.ts')]
    const node = [process.execPath, ...imageFlags('gateway'), ...probe, join(folder, 'dist/gateway.js')]
    const argv = ['unshare', '--mount', 'sh', '-c', inCgroup, 'sh', CGROUP, resolvConf, 'taskset', '-c', String(GATEWAY_CORE), ...node]
    const fixed = {
      ...checkedStreamsEnv(),
      POD_NAME: 'attacked',
      NODE_ENV: 'production',
      HEAP_FILE: this.#heapFile,
      DEREGISTRATION_SECONDS: '0',
      CLUSTER_ADDRESS_NAMESPACES: '*', // the model servers of the attacks have addresses of this machine
    }
    return new ManagedProcess({ name: 'gateway-attacked', argv, env: { ...fixed, ...env }, logFile: join(folder, 'gateway-attacked.log') })
  }

  get #heapFile(): string {
    return join(this.#site.folder, 'attacks-heap')
  }

  #order(order: AttackOrder): void {
    this.#attackers?.send(order)
  }

  #inFlight(): Promise<number> {
    return this.#metric(/^headgate_requests_in_flight (\d+)/m, NaN)
  }

  async #metric(pattern: RegExp, otherwise: number): Promise<number> {
    const text = await fetch(`${this.#metrics}/metrics`).then(
      (answer) => answer.text(),
      () => '',
    )
    return Number(pattern.exec(text)?.[1] ?? otherwise)
  }

  async #heap(): Promise<number> {
    writeFileSync(this.#heapFile, '')
    if (this.isRunning) process.kill(this.#gateway?.pid ?? 0, 'SIGUSR2')
    return waitFor('the heap to be collected', () => Number(readFileSync(this.#heapFile, 'utf8')) || undefined).catch(() => NaN)
  }
}

/** Pins this process with all of its threads; later threads and processes inherit the core. @returns restores the former cores */
function pinThisProcess(core: number): () => void {
  const pid = String(process.pid)
  const [, cores = ''] = execFileSync('taskset', ['-cp', pid], { encoding: 'utf8' }).split('list: ')
  execFileSync('taskset', ['-acp', String(core), pid])
  return () => void execFileSync('taskset', ['-acp', cores.trim(), pid])
}

function rssOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? NaN) * 1024
}

interface NamedRecord {
  readonly uid: string
  readonly text: string
}

function models(ip: string, ports: Readonly<Record<string, number>>): NamedRecord[] {
  const served = Object.entries(ports).map(([name, port]) => model(name, `http://${ip}:${port}`))
  const crowd = Array.from({ length: VISIBLE_MODELS }, (_, i) => model(`model-${i}`, `http://${ip}:9`))
  return [...served, ...SILENT_NAMES.map((name) => model(name, `http://${name}.example:80`)), ...crowd]
}

function model(name: string, url: string): NamedRecord {
  const timeouts = { firstByteSeconds: 10, idleSeconds: 5, totalSeconds: 60 }
  const isTranslated = (TRANSLATED_MODELS as readonly string[]).includes(name)
  const routes = isTranslated ? CALL_ROUTES.filter((route) => route !== 'messages') : CALL_ROUTES
  const backends = [backendRecord({ url, upstreamModel: name, routes })]
  return { uid: name, text: modelText(name, { namespace: 'attackers', allowedNamespaces: '*', timeouts, backends }) }
}

async function fill(redis: RedisPart, keys: readonly IssuedKey[], records: readonly NamedRecord[]): Promise<void> {
  const store = redisStore(redis, 10_000)
  try {
    await store.rebuild(writer(), 'attacks', 1, [
      ...keys.map(({ record }) => ({ kind: 'key', op: 'put', id: record.uid, text: recordText(record) }) as const),
      ...records.map(({ uid, text }) => ({ kind: 'model', op: 'put', id: uid, text }) as const),
    ])
  } finally {
    await store.close()
  }
}
