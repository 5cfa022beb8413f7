/** Stacks of a clone's programs on a control plane, and many ApiKeys on them as a client sees them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CHART_HEAP } from '../support/chart-operator.ts'
import { ControlPlane } from '../support/control-plane.ts'
import { conditionOf, objectPath, type KubeAdmin, type TestObject, type WatchEvent } from '../support/kube-admin.ts'
import type { Program } from '../support/program.ts'
import { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'
import { type BenchSite, cpuMs } from './part.ts'

export const GROUP = 'headgate.dev/v1alpha1'
/** Calls of a client at the same time. */
export const WIDTH = 32
/** Characters of a log. */
const LOG_END = 2_000

/** The heap of the chart. The bounds of a tenant are not measured. */
const OPERATOR_ENV = {
  ...CHART_HEAP,
  ACCOUNTS: 'true',
  MAX_API_KEYS_PER_NAMESPACE: '100000',
  MAX_MODEL_BYTES_PER_NAMESPACE: '1073741824',
}

export async function withControlPlane<T>(
  site: Pick<BenchSite, 'ip' | 'folder'>,
  name: string,
  use: (plane: ControlPlane) => Promise<T>,
): Promise<T> {
  const plane = await ControlPlane.start(join(site.folder, name), site.ip, { audit: false })
  try {
    return await use(plane)
  } finally {
    await plane.stop()
  }
}

/** A stack to open. `name` of its namespaces, pods and logs is unique on the control plane. */
export interface StackOrder {
  readonly plane: ControlPlane
  readonly name: string
  readonly dist: string
  readonly namespaces: readonly string[]
  /** More settings of the operator. */
  readonly operatorEnv?: Readonly<Record<string, string>>
  /** Called before the programs start. */
  readonly prepare?: (stack: Stack) => Promise<unknown>
}

export async function withStack<T>(
  site: BenchSite,
  { plane, name, dist, namespaces, operatorEnv, prepare }: StackOrder,
  use: (stack: Stack) => Promise<T>,
): Promise<T> {
  const { ip, folder } = site
  const modelServer = { url: `http://${ip}:9`, port: 9 } // never called: GET /v1/models needs no backend
  const options = {
    gateways: 0,
    operators: 0,
    namespaces,
    operatorEnv: { ...OPERATOR_ENV, ...operatorEnv },
    gatewayEnv: { ACCESS_LOG: 'sample' },
  }
  const stack = await Stack.open({ name, ip, folder, plane, modelServer }, options)
  try {
    const one = { bundles: dist, start: false }
    const programs = [await stack.addGateway(one), await stack.addGateway(one), await stack.addOperator(one)]
    await stack.publishGateways()
    await prepare?.(stack)
    await Promise.all(programs.map((program) => program.start()))
    return await whileWorking(programs, () => use(stack))
  } finally {
    await stack.close()
  }
}

/** Rejects at once when a program ends with an error, as an operator that lost its Lease on a busy machine: nothing would start it again. */
async function whileWorking<T>(programs: readonly Program[], use: () => Promise<T>): Promise<T> {
  const { promise: failure, reject } = Promise.withResolvers<never>()
  const watching = setInterval(() => {
    const failed = programs.find(({ process }) => process.hasFailed)
    if (failed) reject(new Error(`${failed.spec.pod} has ended:\n${failed.process.log().slice(-LOG_END)}`))
  }, 1_000)
  try {
    return await Promise.race([use(), failure])
  } finally {
    clearInterval(watching)
  }
}

export interface KeyName {
  readonly namespace: string
  readonly name: string
}

/** Names that take the namespaces in turn. */
export function keyNames(prefix: string, count: number, namespaces: readonly string[]): KeyName[] {
  return Array.from({ length: count }, (_, i) => ({ name: `${prefix}-${i}`, namespace: namespaces[i % namespaces.length] ?? '' }))
}

export function keyManifest({ namespace, name }: KeyName, spec: object = {}): TestObject {
  return { apiVersion: GROUP, kind: 'ApiKey', metadata: { name, namespace }, spec: { models: ['*'], ...spec } }
}

export function keyPath({ namespace, name }: KeyName): string {
  return objectPath(GROUP, 'ApiKey', namespace, name)
}

const idOf = ({ namespace = '', name }: { readonly namespace?: string; readonly name: string }): string => `${namespace}/${name}`

/** Follows many ApiKeys and their Secrets as a client, by one watch per kind and namespace. */
export class KeyWatch {
  readonly #stop = new AbortController()
  readonly #credentials = new Map<string, string>()
  readonly #described = new Set<string>()
  readonly #ready = new Set<string>()

  constructor(kube: KubeAdmin, namespaces: readonly string[]) {
    const follow = (apiVersion: string, kind: string, namespace: string, see: (event: WatchEvent) => void): void =>
      void kube.watch(objectPath(apiVersion, kind, namespace), this.#stop.signal, see)
    for (const namespace of namespaces) {
      follow(GROUP, 'ApiKey', namespace, ({ object }) => this.#seeKey(object))
      follow('v1', 'Secret', namespace, ({ object }) => this.#seeSecret(object))
    }
  }

  /** The value in the Secret of a key. @throws Error when there is none yet */
  credential(key: KeyName): string {
    const found = this.#credentials.get(idOf(key))
    if (found === undefined) throw new Error(`there is no value in the Secret of ${idOf(key)}`)
    return found
  }

  /** Counts the keys that have a Secret, those with a status of the present generation, and those with Ready=True so far. */
  progress(keys: readonly KeyName[]): Readonly<Record<'issued' | 'described' | 'ready', number>> {
    const count = (seen: ReadonlySet<string> | ReadonlyMap<string, string>): number => keys.filter((key) => seen.has(idOf(key))).length
    return { issued: count(this.#credentials), described: count(this.#described), ready: count(this.#ready) }
  }

  async untilReady(keys: readonly KeyName[], deadlineMs = 600_000): Promise<void> {
    const options = { deadlineMs, everyMs: Math.max(20, keys.length / 250) }
    await waitFor(`${keys.length} ApiKeys to be Ready`, () => this.progress(keys).ready === keys.length, options)
  }

  stop(): void {
    this.#stop.abort()
  }

  #seeKey(object: TestObject): void {
    const { metadata, status } = object
    const id = idOf(metadata)
    if (status?.observedGeneration === metadata['generation']) this.#described.add(id)
    if (conditionOf(object, 'Ready')?.status === 'True') this.#ready.add(id)
  }

  #seeSecret({ metadata, data }: TestObject): void {
    const text = (data as Record<string, string> | undefined)?.['SERVICE_API_KEY']
    if (text !== undefined) this.#credentials.set(idOf(metadata), Buffer.from(text, 'base64').toString())
  }
}

/** Waits until nothing is in the queue of an operator. */
export async function untilIdle(operator: Program): Promise<void> {
  const isIdle = async (): Promise<boolean> => {
    const depths = (await operator.metrics()).match(/^workqueue_depth\{.*/gm) ?? []
    return depths.length > 0 && depths.every((depth) => depth.endsWith(' 0'))
  }
  await waitFor('the operator to have nothing to do', isIdle, { deadlineMs: 900_000, everyMs: 2_000 })
}

export interface ServerReading {
  readonly cpuSeconds: number
  /** POST, PUT and PATCH of all Secrets. */
  readonly secretWrites: number
  /** Writes of a status of our kinds. */
  readonly statusWrites: number
}

export async function serverReading(plane: ControlPlane): Promise<ServerReading> {
  const pid = Number(readFileSync(join(plane.address.folder, 'kube-apiserver.pid'), 'utf8'))
  const samples = (await plane.admin.text('/metrics')).split('\n').filter((line) => line.startsWith('apiserver_request_total{'))
  const written = (label: string): number =>
    samples
      .filter((line) => line.includes(label) && /verb="(POST|PUT|PATCH|APPLY)"/.test(line))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  return {
    cpuSeconds: cpuMs(pid) / 1000,
    secretWrites: written('resource="secrets"'),
    statusWrites: written('subresource="status"'),
  }
}
