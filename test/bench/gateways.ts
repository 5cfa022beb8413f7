/** Starts what requests are measured on: mocks, the bare proxy, and for each clone a Redis full of keys and a gateway, each pinned to its core. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePorts } from '../support/free-port.ts'
import { imageFlags } from '../support/image-flags.ts'
import { ManagedProcess } from '../support/managed-process.ts'
import { RedisPart } from '../support/redis-part.ts'
import { waitFor } from '../support/wait-for.ts'
import type { FillOrder } from './fill.ts'
import type { BenchSite } from './part.ts'

const ROOT = join(import.meta.dirname, '../..')
const MEASURED_CORE = 0
/** Core of the load, the mocks and Redis. */
export const LOAD_CORE = 1
export const KEYS = 10_000
const ANSWER_BYTES = 600
const PROSE = 'Summarise the incident of last night in plain words for the people on call: what broke first, and why did no alarm tell us? '

/** Models by the kind of their answers. `dear`: a request holds more than a process may hold ahead. */
export const MODELS = { plain: 'bench-plain', dear: 'bench-dear', stream: 'bench-stream' } as const
export type ModelName = keyof typeof MODELS
/** Routes by which a comparison calls its model. */
const ROUTES = { chat: '/v1/chat/completions', messages: '/v1/messages' } as const
export type BenchRoute = keyof typeof ROUTES
/** Micro-units for a million tokens: 0.1 of the currency, and 1,000. */
const PRICES: Readonly<Record<ModelName, number>> = { plain: 100_000, stream: 100_000, dear: 1_000_000_000 }
export type KeyKind = keyof FillOrder['keys'] | 'unknown'

export interface Clone {
  readonly clone: 'this' | 'BASE'
  readonly root: string
  readonly dist: string
}

export function clonesOf({ folder, base }: BenchSite): readonly [Clone, Clone?] {
  const own: Clone = { clone: 'this', root: ROOT, dist: join(folder, 'dist') }
  return base === undefined ? [own] : [own, { clone: 'BASE', root: base, dist: join(base, 'dist') }]
}

export interface Server {
  readonly pid: number
  url(model: ModelName, route?: BenchRoute): string
  keysFile(kind: KeyKind, count: number): string
  storeCalls(): Promise<number>
}

/** All processes of a comparison; `stop` ends them. */
export interface Rig {
  readonly gateway: Server
  readonly base: Server | undefined
  /** The reference: a proxy without any policy. One process for each kind of answers. */
  readonly bare: Readonly<Record<'plain' | 'stream', Server>>
  bodyFile(model: ModelName, bytes: number, route?: BenchRoute): string
  eventsWritten(): Promise<number>
  stop(): Promise<void>
}

export class Started {
  readonly #folder: string
  readonly #stops: (() => Promise<unknown>)[] = []

  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder, { recursive: true })
  }

  async process(name: string, argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ManagedProcess> {
    const logFile = join(this.#folder, `${name}.log`)
    const started = new ManagedProcess({ name, argv, env: { NODE_ENV: 'production', ...env }, logFile })
    await started.start()
    this.#stops.push(() => started.stop())
    return started
  }

  async nginx(name: string, config: string): Promise<void> {
    const prefix = join(this.#folder, name)
    mkdirSync(prefix, { recursive: true })
    writeFileSync(join(prefix, 'nginx.conf'), config)
    await this.process(name, [
      ...pinned(LOAD_CORE),
      'nginx',
      '-p',
      prefix,
      '-c',
      join(prefix, 'nginx.conf'),
      '-e',
      join(prefix, 'error.log'),
    ])
  }

  async redis(name: string, ip: string): Promise<RedisPart> {
    const redis = await RedisPart.start(join(this.#folder, name), ip)
    this.#stops.push(() => redis.stop())
    return redis
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) await stop()
  }
}

const pinned = (core: number): string[] => ['taskset', '-c', String(core)]

export async function startRig(site: BenchSite, name: string): Promise<Rig> {
  const folder = join(site.folder, name)
  const started = new Started(folder)
  try {
    return await start(site, folder, started)
  } catch (error) {
    await started.stop()
    throw error
  }
}

async function start(site: BenchSite, folder: string, started: Started): Promise<Rig> {
  const { ip } = site
  const [plain = 0, stream = 0, barePlain = 0, bareStream = 0] = await freePorts(4)
  const mocks = { plain: `http://${ip}:${plain}`, dear: `http://${ip}:${plain}`, stream: `http://${ip}:${stream}` }
  await started.nginx('mock', instantMock(`${ip}:${plain}`))
  await started.process('stream-mock', [
    ...pinned(LOAD_CORE),
    process.execPath,
    join(import.meta.dirname, 'stream-mock.ts'),
    ip,
    String(stream),
  ])
  const count = site.isQuick ? 300 : KEYS
  const keys = { bare: count, limited: count, refused: Math.min(count, 50), shared: count }
  const models = Object.fromEntries(
    Object.entries(MODELS).map(([kind, model]) => [model, { url: mocks[kind as ModelName], price: PRICES[kind as ModelName] }]),
  )
  const [own, other] = clonesOf(site)
  const content: Content = { ip, keys, models, folder }
  const gateway = await startGateway(started, own, content)
  const base = other && (await startGateway(started, other, content))
  const bare = async (port: number, origin: string): Promise<Server> => {
    const argv = [...pinned(MEASURED_CORE), process.execPath, join(import.meta.dirname, 'bare-proxy.ts'), ip, String(port), origin]
    const { pid } = await started.process(`bare-${port}`, argv)
    const url = `http://${ip}:${port}${ROUTES.chat}`
    await waitFor('the bare proxy to answer', async () => (await fetch(url, { method: 'POST', body: '{}' })).ok)
    return { ...gateway, pid, url: () => url }
  }
  return {
    gateway,
    base,
    bare: { plain: await bare(barePlain, mocks.plain), stream: await bare(bareStream, mocks.stream) },
    bodyFile: (model, bytes, route = 'chat') => {
      const file = join(folder, `body-${model}-${route}-${bytes}.json`)
      writeFileSync(file, benchBody(model, bytes, route))
      return file
    },
    eventsWritten: async () => Number(await (await fetch(`${mocks.stream}/events`)).text()),
    stop: () => started.stop(),
  }
}

interface Content extends Pick<FillOrder, 'keys' | 'models' | 'folder'> {
  readonly ip: string
}

async function startGateway(started: Started, { clone, root, dist }: Clone, { ip, ...content }: Content): Promise<Server> {
  const folder = join(content.folder, clone)
  const redis = await started.redis(`redis-${clone}`, ip)
  await fillRedis(root, { redis, ...content, folder })
  const [port = 0, metricsPort = 0] = await freePorts(2)
  const env = gatewayEnv(redis, port, metricsPort)
  const argv = [...pinned(MEASURED_CORE), process.execPath, ...imageFlags('gateway'), join(dist, 'gateway.js')]
  const gateway = await started.process(`gateway-${clone}`, argv, env)
  await waitFor(`the gateway of ${root} to be ready`, async () => (await fetch(`http://${ip}:${metricsPort}/readyz`)).ok)
  return {
    pid: gateway.pid,
    url: (_, route = 'chat') => `http://${ip}:${port}${ROUTES[route]}`,
    keysFile: (kind, count) => {
      const all =
        kind === 'unknown'
          ? unknownKeys(readFileSync(join(folder, 'keys-bare'), 'utf8'))
          : readFileSync(join(folder, `keys-${kind}`), 'utf8')
      const file = join(folder, `some-${kind}-${count}`)
      writeFileSync(file, all.split('\n').slice(0, count).join('\n'), { mode: 0o600 })
      return file
    },
    storeCalls: async () => Number(/^cmdstat_fcall:calls=(\d+)/m.exec(await redis.admin.info('commandstats'))?.[1] ?? 0),
  }
}

/** Environment of a gateway on this Redis. Its user may do everything, since two clones may need different rights. */
export function gatewayEnv(redis: RedisPart, port: number, metricsPort: number): Record<string, string> {
  const pod = { POD_NAME: 'bench', PORT: String(port), METRICS_PORT: String(metricsPort) }
  return { ...redis.envFor('admin'), ...pod, DEREGISTRATION_SECONDS: '0', ACCESS_LOG: 'sample', CLUSTER_ADDRESS_NAMESPACES: '*' }
}

export async function fillRedis(
  root: string,
  { redis, ...order }: Omit<FillOrder, 'redis'> & { readonly redis: RedisPart },
): Promise<void> {
  const program = join(root, 'test/bench/fill.ts')
  if (!existsSync(program)) throw new Error(`${program} is missing; copy it from this clone and adapt its imports`)
  mkdirSync(order.folder, { recursive: true })
  const { REDIS_URL: url, REDIS_USERNAME: username, REDIS_PASSWORD: password } = redis.envFor('admin')
  const text = JSON.stringify({ ...order, redis: { url, username, password } } satisfies FillOrder)
  await promisify(execFile)(process.execPath, [program, text], { cwd: root })
}

/** Credentials of the same form that no table holds: their last characters, and so their checksum, are those of other ones. */
function unknownKeys(known: string): string {
  const keys = known.split('\n')
  return keys.map((key, at) => `${key.slice(0, 20)}${keys[(at + 1) % keys.length]?.slice(20) ?? ''}`).join('\n')
}

/** A request of exactly this size, with one long system text. */
export function benchBody(model: ModelName, bytes: number, route: BenchRoute = 'chat'): string {
  const user = { role: 'user', content: 'And what should be done first?' }
  const prompts = {
    chat: (text: string) => ({ messages: [{ role: 'system', content: text }, user] }),
    messages: (text: string) => ({ system: text, messages: [user] }),
  }
  const body = (text: string): string =>
    JSON.stringify({
      model: MODELS[model],
      ...prompts[route](text),
      max_tokens: 256,
      temperature: 0.2,
      ...(model === 'stream' ? { stream: true } : {}),
    })
  const room = bytes - body('').length
  return body(PROSE.repeat(Math.ceil(room / PROSE.length)).slice(0, room))
}

function chatAnswer(): string {
  const answer = (content: string): string =>
    JSON.stringify({
      ...{ id: 'chatcmpl-bench', object: 'chat.completion', created: 1_790_000_000, model: MODELS.plain },
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 321, completion_tokens: 64, total_tokens: 385 },
    })
  return answer('word '.repeat(ANSWER_BYTES).slice(0, ANSWER_BYTES - answer('').length))
}

/** An nginx that answers every POST at once with the same bytes, and never closes a connection because of its age. */
export function instantMock(listen: string): string {
  return `user root;
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log warn;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_buffer_size 256k;
    client_max_body_size 40m;
    client_body_temp_path body;
    keepalive_requests 1000000000;
    keepalive_timeout 75s;
    server {
      listen ${listen};
      location / { default_type application/json; return 200 '${chatAnswer()}'; }
    }
}
`
}
