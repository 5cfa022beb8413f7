/** Starts the contenders and their surroundings: mocks and Redis with 10,000 keys, each pinned to its core. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RedisConnection } from '#platform/redis-connection.ts'
import { RedisProjectionStore } from '../../operator/projection/redis-projection-store.ts'
import { freePorts } from '../support/free-port.ts'
import { imageFlags } from '../support/image-flags.ts'
import { ManagedProcess } from '../support/managed-process.ts'
import { RedisPart } from '../support/redis-part.ts'
import { waitFor } from '../support/wait-for.ts'
import type { Cell, ContenderName } from './cells.ts'
import { chatAnswer, chatBody, fillProjection, unknownKeys, USED_KEYS } from './fixtures.ts'
import { mockConfig, proxyConfig } from './nginx-config.ts'
import { processTree } from './proc.ts'

/** Core of the measured contender. */
export const CONTENDER_CORE = 0
/** Core of the load, the mocks and Redis. */
export const LOAD_CORE = 1

const PATH = '/v1/chat/completions'

/** One started contender. */
export interface Contender {
  readonly name: ContenderName
  /** Its processes for this kind of load; none for `direct`. */
  pids(kind: Cell['kind']): number[]
  url(kind: Cell['kind']): string
}

/** All running processes; `stop` ends them. */
export interface Bench {
  readonly contenders: ReadonlyMap<ContenderName, Contender>
  readonly redis: RedisPart
  /** Files for the load generator. */
  readonly files: { body(cell: Cell): string; keys(cell: Cell): string }
  /** One key that every contender admits. */
  readonly key: string
  /** Events that the streaming mock has written so far. */
  eventsWritten(): Promise<number>
  stop(): Promise<void>
}

/** The site of a run. */
export interface BenchSite {
  readonly ip: string
  readonly folder: string
  /** Copy of the gateway's bundle. */
  readonly gatewayBundle: string
  /** More flags for the gateway's Node. */
  readonly gatewayFlags: readonly string[]
}

/** Starts all processes. If one process does not start, stops those that have started. */
export async function startBench(site: BenchSite): Promise<Bench> {
  const starter = new Starter(site)
  try {
    return await starter.start()
  } catch (error) {
    await starter.stop()
    throw error
  }
}

class Starter {
  readonly #site: BenchSite
  readonly #stops: (() => Promise<unknown>)[] = []

  constructor(site: BenchSite) {
    this.#site = site
  }

  async start(): Promise<Bench> {
    const { ip, folder } = this.#site
    const ports = await freePorts(9)
    const at = (i: number): string => `${ip}:${ports[i]}`
    const mocks = { plain: at(0), stream: at(1) }
    await this.#nginx('mock', LOAD_CORE, mockConfig(mocks.plain, chatAnswer()))
    await this.#node('stream-mock', LOAD_CORE, [join(import.meta.dirname, 'stream-mock.ts'), ip, String(ports[1])])
    const redis = await RedisPart.start(join(folder, 'redis'), ip)
    this.#stops.push(() => redis.stop())
    const keys = await this.#fill(redis, mocks)
    const nginx = await this.#nginxProxy(keys, mocks, [at(2), at(3)])
    const bares = await Promise.all([this.#bare(ports[4] ?? 0, mocks.plain), this.#bare(ports[5] ?? 0, mocks.stream)])
    const gateway = await this.#gateway(redis, ports[6] ?? 0, ports[7] ?? 0)
    const contenders: readonly Contender[] = [
      contender('direct', [mocks.plain, mocks.stream], []),
      contender('bare', [at(4), at(5)], bares),
      contender('gateway', [at(6), at(6)], [gateway]),
      contender('nginx', [at(2), at(3)], [nginx]),
    ]
    return {
      contenders: new Map(contenders.map((one) => [one.name, one])),
      redis,
      files: this.#files(keys),
      key: keys[0] ?? '',
      eventsWritten: async () => Number(await (await fetch(`http://${mocks.stream}/events`)).text()),
      stop: () => this.stop(),
    }
  }

  /** Stops the started processes, the last one first. */
  async stop(): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) await stop()
  }

  async #fill(redis: RedisPart, mocks: { plain: string; stream: string }): Promise<readonly string[]> {
    const { REDIS_URL, REDIS_USERNAME, REDIS_PASSWORD } = redis.envFor('operator')
    const settings = { url: REDIS_URL, username: REDIS_USERNAME, password: REDIS_PASSWORD }
    const store = new RedisProjectionStore(new RedisConnection(settings, 'bench', { commandMs: 10_000 }), 'hg')
    try {
      return await fillProjection(store, mocks)
    } finally {
      await store.close()
    }
  }

  async #nginxProxy(keys: readonly string[], mocks: { plain: string; stream: string }, listen: readonly string[]): Promise<ManagedProcess> {
    const map = join(this.#site.folder, 'nginx-keys.map')
    writeFileSync(map, keys.map((key) => `"Bearer ${key}" 1;\n`).join(''), { mode: 0o600 })
    const sites = [mocks.plain, mocks.stream].map((upstream, i) => ({ listen: listen[i] ?? '', upstream }))
    return this.#nginx('nginx', CONTENDER_CORE, proxyConfig(map, sites))
  }

  #nginx(name: string, core: number, config: string): Promise<ManagedProcess> {
    const prefix = join(this.#site.folder, name)
    mkdirSync(prefix, { recursive: true })
    writeFileSync(join(prefix, 'nginx.conf'), config)
    return this.#process(name, core, ['nginx', '-p', prefix, '-c', join(prefix, 'nginx.conf'), '-e', join(prefix, 'error.log')])
  }

  #bare(port: number, upstream: string): Promise<ManagedProcess> {
    const argv = [join(import.meta.dirname, 'bare-proxy.ts'), this.#site.ip, String(port), `http://${upstream}`]
    return this.#node(`bare-${port}`, CONTENDER_CORE, argv)
  }

  async #gateway(redis: RedisPart, port: number, metricsPort: number): Promise<ManagedProcess> {
    const { ip, gatewayBundle, gatewayFlags } = this.#site
    const env = {
      ...redis.envFor('gateway'),
      POD_NAME: 'bench',
      PORT: String(port),
      METRICS_PORT: String(metricsPort),
      DEREGISTRATION_SECONDS: '0',
    }
    const started = await this.#node('gateway', CONTENDER_CORE, [...imageFlags('gateway'), ...gatewayFlags, gatewayBundle], env)
    await waitFor('the gateway to be ready', async () => (await fetch(`http://${ip}:${metricsPort}/readyz`)).ok)
    return started
  }

  #node(name: string, core: number, argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ManagedProcess> {
    return this.#process(name, core, [process.execPath, ...argv], { NODE_ENV: 'production', ...env })
  }

  async #process(name: string, core: number, argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ManagedProcess> {
    const pinned = ['taskset', '-c', String(core), ...argv]
    const started = new ManagedProcess({ name, argv: pinned, env, logFile: join(this.#site.folder, `${name}.log`) })
    await started.start()
    this.#stops.push(() => started.stop())
    return started
  }

  #files(keys: readonly string[]): Bench['files'] {
    const file = (name: string, content: string): string => {
      const path = join(this.#site.folder, name)
      writeFileSync(path, content, { mode: 0o600 })
      return path
    }
    const known = file('keys', keys.slice(0, USED_KEYS).join('\n'))
    const unknown = file('unknown-keys', unknownKeys(USED_KEYS).join('\n'))
    return {
      body: ({ kind, bodyBytes }) => file(`body-${kind}-${bodyBytes}.json`, chatBody(bodyBytes, kind === 'stream')),
      keys: ({ kind }) => (kind === 'refused' ? unknown : known),
    }
  }
}

/** @param hosts addresses for plain and for streamed answers @param processes one process for both, or one for each */
function contender(name: ContenderName, hosts: readonly string[], processes: readonly ManagedProcess[]): Contender {
  const index = (kind: Cell['kind']): number => (kind === 'stream' ? 1 : 0)
  return {
    name,
    pids: (kind) => {
      const process = processes[index(kind)] ?? processes[0]
      return process === undefined ? [] : processTree(process.pid)
    },
    url: (kind) => `http://${hosts[index(kind)]}${PATH}`,
  }
}
