/** The whole operator (`createOperator`) over memory: objects, projection, and gateways that acknowledge what they are told. */
import { decodeKeyRecord, type KeyRecord } from '../../gateway/shared/key-record.ts'
import type { Log } from '../../gateway/shared/log.ts'
import { decodeModelRecord, type ModelRecord } from '../../gateway/shared/model-record.ts'
import type { RecordKind } from '../../gateway/shared/revision-log.ts'
import { createOperator, type Operator } from '../../operator/app.ts'
import type { KubeObject, KubePort, Resource } from '../../operator/kube/port.ts'
import { apiKeys, endpointSlices, namespaces, secrets, servedModels, services } from '../../operator/kube/resources.ts'
import type { OperatorSettings } from '../../operator/operator-deps.ts'
import { ObjectStore } from '../../standalone/object-store.ts'
import { FaultyProjectionStore } from './faulty-projection-store.ts'
import { hurriedClock } from './hurried-clock.ts'
import { SHOP } from './objects.ts'

const SETTINGS: OperatorSettings = {
  namespace: 'headgate',
  gatewayService: 'gateway',
  keyringShards: 2,
  publicURL: 'http://gateway.example',
  revocationWaitMs: 30_000,
  watchNamespaces: [],
  allowLoopback: false,
}

/** One Event as it was recorded. */
export interface RecordedEvent {
  readonly name: string
  readonly reason: string
  readonly note: string
}

/** A cluster of one operator at a time. */
export class OperatorCluster {
  /** How far the clock of the API server is ahead. */
  aheadMs = 0
  readonly objects = new ObjectStore({ now: () => Date.now() + this.aheadMs })
  readonly store = new FaultyProjectionStore()
  readonly events: RecordedEvent[] = []
  readonly logs: string[] = []
  /** Every write call to the API, `<verb> <plural> <name>`. */
  readonly writes: string[] = []
  /** Runs before each read of one object; throwing is an answer that does not come. */
  beforeGet: (plural: string, name: string) => void = () => undefined
  #fence = 0
  #operator: Operator | undefined

  constructor() {
    this.store.obedient = ['gateway-0', 'gateway-1']
  }

  /** Starts an operator that leads. */
  async start(settings: Partial<OperatorSettings> = {}): Promise<void> {
    const { promise } = this.startup(settings)
    await promise
  }

  /** As `start`, without waiting for it. */
  startup(settings: Partial<OperatorSettings> = {}): { readonly operator: Operator; readonly promise: Promise<void> } {
    const fence = (this.#fence += 1)
    const operator = createOperator({
      kube: this.#port(),
      informers: {
        apiKeys: this.objects.informer(apiKeys),
        servedModels: this.objects.informer(servedModels),
        services: this.objects.informer(services),
        endpointSlices: this.objects.informer(endpointSlices),
        namespaces: this.objects.informer(namespaces),
      },
      store: this.store,
      leader: {
        fence: () => fence,
        raiseFence: () => Promise.resolve(),
        assertLeading: () => undefined,
        onFenced: () => undefined,
      },
      events: { record: ({ metadata }, { reason, note }) => void this.events.push({ name: metadata.name, reason, note }) },
      clock: hurriedClock,
      log: this.#log(),
      settings: { ...SETTINGS, ...settings },
    })
    this.#operator = operator
    return { operator, promise: operator.start() }
  }

  async stop(): Promise<void> {
    await this.#operator?.stop()
    this.#operator = undefined
  }

  /** Creates, or replaces spec, data and labels of, an object. */
  async apply<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const ref = { namespace: object.metadata.namespace ?? '', name: object.metadata.name }
    const present = await this.objects.get(resource, ref)
    if (!present) return this.objects.create(resource, object)
    return this.objects.update(resource, { ...present, ...object, metadata: { ...present.metadata, ...object.metadata } })
  }

  async keyRecords(): Promise<KeyRecord[]> {
    return (await this.#texts('key')).map(decodeKeyRecord)
  }

  async modelRecords(): Promise<ModelRecord[]> {
    return (await this.#texts('model')).map(decodeModelRecord)
  }

  /** `<status> <reason>` of one condition; '' while there is none. */
  async condition(resource: typeof apiKeys | typeof servedModels, name: string, type: string): Promise<string> {
    const object = await this.objects.get<
      KubeObject & { status?: { conditions?: ReadonlyArray<{ type: string; status: string; reason: string }> | undefined } }
    >(resource as Resource, { namespace: SHOP, name })
    const found = object?.status?.conditions?.find((condition) => condition.type === type)
    return found ? `${found.status} ${found.reason}` : ''
  }

  /** Entries of a Secret in plain text; undefined when there is none. */
  async entries(name: string, namespace = SHOP): Promise<Record<string, string> | undefined> {
    const found = await this.objects.get(secrets, { namespace, name })
    return found && Object.fromEntries(Object.entries(found.data ?? {}).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]))
  }

  async #texts(kind: RecordKind): Promise<string[]> {
    const meta = await this.store.memory.meta()
    const found: string[] = []
    if (meta) {
      await this.store.memory.scan(meta.epoch, kind, (batch) => {
        found.push(...batch.map(([, text]) => text))
      })
    }
    return found
  }

  #port(): KubePort {
    const { objects, writes } = this
    const noted = <R>(verb: string, resource: Resource, name: string, act: () => Promise<R>): Promise<R> => {
      writes.push(`${verb} ${resource.plural} ${name}`)
      return act()
    }
    return {
      get: async (resource, ref) => {
        this.beforeGet(resource.plural, ref.name)
        return objects.get(resource, ref)
      },
      list: async (resource, namespace) => {
        this.beforeGet(resource.plural, '')
        return objects.list(resource, namespace)
      },
      create: (resource, object) => noted('create', resource, object.metadata.name, () => objects.create(resource, object)),
      update: (resource, object) => noted('update', resource, object.metadata.name, () => objects.update(resource, object)),
      patch: (resource, ref, operations) => noted('patch', resource, ref.name, () => objects.patch(resource, ref, operations)),
      applyStatus: (resource, object) => noted('status', resource, object.metadata.name, () => objects.applyStatus(resource, object)),
      remove: (resource, ref, preconditions) => noted('remove', resource, ref.name, () => objects.remove(resource, ref, preconditions)),
    }
  }

  #log(): Log {
    const line = (...parts: unknown[]): void => {
      this.logs.push(parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' '))
    }
    return { debug: line, info: line, warn: line, error: line }
  }
}
