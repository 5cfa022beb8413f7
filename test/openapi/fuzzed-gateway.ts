/** The program of `make run` with a real Redis, a model that serves every route, and keys of all sorts. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RedisPart } from '../support/redis-part.ts'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { startEveryRouteModel } from './every-route-model.ts'

export const MODEL = 'fuzzed'
const NAMESPACE = 'fuzz'
const BUDGET = { name: 'small', amount: '0.000001', unit: 'Currency', window: 'Lifetime' }
/** Keys by name. */
const KEYS: Readonly<Record<string, object>> = {
  whole: { models: ['*'] },
  narrow: { models: ['other'] },
  slow: { models: ['*'], limits: { requestsPerMinute: 5 } },
  poor: { models: ['*'], budgets: [BUDGET] },
  suspended: { models: ['*'], state: 'Suspended' },
}
const ROUTES = [
  ...(['chat/completions', 'completions', 'responses', 'embeddings', 'rerank', 'audio/transcriptions', 'audio/speech'] as const),
  'messages/count_tokens',
]

export interface FuzzedGateway {
  /** Without `/v1`. */
  readonly url: string
  /** The value of each key, by name. */
  readonly keys: ReadonlyMap<string, string>
  /** Everything that the program has logged. */
  log(): string
}

/** @param folder gets the state, which is removed at the end */
export async function startFuzzedGateway(folder: string, parts: AsyncDisposableStack): Promise<FuzzedGateway> {
  const state = join(folder, 'state')
  parts.defer(() => rmSync(state, { recursive: true, force: true })) // holds the keys
  const model = await startEveryRouteModel()
  parts.defer(() => model.close())
  const redis = await RedisPart.start(join(state, 'redis'), '127.0.0.1')
  parts.defer(() => redis.stop())
  mkdirSync(join(state, 'manifests'), { recursive: true })
  writeFileSync(join(state, 'manifests/all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests(model.url) }))
  const { REDIS_USERNAME: user, REDIS_PASSWORD: password } = redis.envFor('admin')
  const program = new StandaloneProcess(state, { REDIS_URL: redis.url.replace('//', `//${user}:${password}@`), ACCESS_LOG: 'errors' })
  parts.defer(async () => void (await program.stop()))
  const base = await program.baseURL()
  const keys = new Map(Object.keys(KEYS).map((name) => [name, program.credential(`${NAMESPACE}/${name}`)]))
  return { url: base.replace(/\/v1$/, ''), keys, log: () => program.output }
}

function manifests(modelURL: string): object[] {
  const apiVersion = 'headgate.dev/v1alpha1'
  const metadata = (name: string): object => ({ name, namespace: NAMESPACE })
  const backends = [{ name: 'main', url: modelURL, engine: 'Other', routes: ROUTES, messages: 'Native' }]
  const pricing = { inputPerMillion: '1', outputPerMillion: '1' }
  const keys = Object.entries(KEYS).map(([name, spec]) => ({ apiVersion, kind: 'ApiKey', metadata: metadata(name), spec }))
  return [{ apiVersion, kind: 'ServedModel', metadata: metadata(MODEL), spec: { pricing, backends } }, ...keys]
}
