/**
 * The operator's reconcile of ApiKeys over memory: object store, projection and gateways that acknowledge what they are told. A `process`
 * can be thrown away at any write, as by kill -9, and another one started on what is left.
 */
import { reconcile } from '../../operator/apikey/reconcile.ts'
import { Calm } from '../../operator/apikey/calm.ts'
import { ChangeSignals } from '../../operator/apikey/change-signals.ts'
import type { ApiKeyDeps } from '../../operator/apikey/deps.ts'
import { keyRecords, rescue } from '../../operator/apikey/rescue.ts'
import { revokeOrphans, sweep } from '../../operator/apikey/sweep.ts'
import { CredentialVault } from '../../operator/apikey/vault.ts'
import type { ApiKey, ApiKeySpec } from '../../operator/api/apikey.ts'
import { Keyring } from '../../operator/keyring/keyring.ts'
import type { KubeObject, KubePort, ObjectRef, Resource } from '../../operator/kube/port.ts'
import { apiKeys, type Secret, secrets } from '../../operator/kube/resources.ts'
import { Acknowledgements } from '../../operator/projection/acknowledgements.ts'
import { Projection } from '../../operator/projection/projection.ts'
import type { LiveProcess, ProjectionChange, ProjectionStore, WriteOutcome } from '../../operator/projection/store.ts'
import { hurriedClock } from './hurried-clock.ts'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { ObjectStore } from '../../standalone/object-store.ts'
import { decodeKeyRecord, type KeyRecord } from '../../gateway/shared/key-record.ts'
import type { RecordKind, ProjectionMeta } from '../../gateway/shared/revision-log.ts'

/** A process that was killed: nothing it does afterwards counts. */
export class Killed extends Error {}

/**
 * When to kill: at the n-th write (counted from 0), before it is applied or after it but before its answer. `late`: the call is under way
 * when the process dies, and arrives at some time afterwards (`landLate`).
 */
export interface KillAt {
  readonly write: number
  readonly when: 'before' | 'after' | 'late'
}

/** How far a gateway has come. */
export interface Applied {
  readonly epoch: string
  readonly rev: number
}

/** One event as the recorder got it. */
export interface RecordedEvent {
  readonly name: string
  readonly reason: string
  readonly note: string
}

/** World of one test. */
export class OperatorWorld {
  now = Date.UTC(2026, 0, 1)
  readonly objects = new ObjectStore({ now: () => this.now })
  memory = new MemoryProjection({ now: () => this.now })
  /** Pods that serve and acknowledge at once. */
  pods: string[] = ['gateway-0', 'gateway-1']
  /** Pods in the EndpointSlice that say nothing. */
  silentPods: string[] = []
  storeDown = false
  /** What those pods have applied; by default everything that the store holds. */
  applied: () => Promise<Applied> = async () => {
    const { epoch = '', rev = 0 } = (await this.memory.meta()) ?? {}
    return { epoch, rev }
  }
  readonly events: RecordedEvent[] = []
  readonly writes: string[] = []
  readonly late: Array<() => Promise<unknown>> = []
  #fence = 0

  /** Starts one operator process. */
  async start(kill?: KillAt): Promise<OperatorProcess> {
    this.#fence += 1
    const process = new OperatorProcess(this, this.#fence, kill)
    await process.start()
    return process
  }

  /** Calls of killed processes arrive now; what has become of them nobody learns. */
  async landLate(): Promise<void> {
    await Promise.allSettled(this.late.splice(0).map((write) => write()))
  }

  async apply(spec: Partial<ApiKeySpec> = {}, name = 'bot', namespace = 'shop'): Promise<ApiKey> {
    const full: ApiKeySpec = { state: 'Active', ...spec }
    const present = await this.objects.get(apiKeys, { namespace, name })
    if (present) return this.objects.update(apiKeys, { ...present, spec: full })
    return this.objects.create(apiKeys, { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata: { name, namespace }, spec: full })
  }

  async key(name = 'bot', namespace = 'shop'): Promise<ApiKey> {
    const found = await this.objects.get(apiKeys, { namespace, name })
    if (!found) throw new Error(`no ApiKey ${namespace}/${name}`)
    return found
  }

  secret(name = 'bot', namespace = 'shop'): Promise<Secret | undefined> {
    return this.objects.get(secrets, { namespace, name })
  }

  /** Value in the user's Secret; '' when there is none. */
  async value(name = 'bot', namespace = 'shop'): Promise<string> {
    return Buffer.from((await this.secret(name, namespace))?.data?.['SERVICE_API_KEY'] ?? '', 'base64').toString()
  }

  /** Every key record that gateways hold now. */
  async records(): Promise<KeyRecord[]> {
    const meta = await this.memory.meta()
    const found: KeyRecord[] = []
    if (meta)
      await this.memory.scan(meta.epoch, 'key', (batch) => {
        found.push(...batch.map(([, text]) => decodeKeyRecord(text)))
      })
    return found
  }

  condition(key: ApiKey, type: string): string {
    const found = key.status?.conditions?.find((condition) => condition.type === type)
    return found ? `${found.status} ${found.reason}` : 'absent'
  }
}

/** One operator process of the world. */
export class OperatorProcess {
  readonly deps: ApiKeyDeps
  readonly #world: OperatorWorld
  #written = 0
  #dead = false
  /** An ApiKey was found gone: a sweep follows. */
  #isGone = false

  constructor(world: OperatorWorld, fence: number, kill: KillAt | undefined) {
    this.#world = world
    const guard: Guard = (name, write, mayBeLate = true) => this.#guard(name, kill, write, mayBeLate)
    const kube = killableKube(world.objects, guard)
    const store = killableStore(world, guard)
    const assertLeading = (): void => {
      if (this.#dead) throw new Killed()
    }
    const keyring = new Keyring({ kube, namespace: 'headgate', shards: 2, assertLeading, warn: () => undefined })
    const projection = new Projection({
      store,
      clock: hurriedClock,
      fence: () => fence,
      raiseFence: () => Promise.resolve(),
      assertLeading,
      onFenced: () => undefined,
      rescue: (id, text) => rescue(id, text, this.deps),
      log: { info: () => undefined },
      outage: { failed: () => undefined, works: () => undefined },
    })
    const acknowledgements = new Acknowledgements({
      store,
      clock: hurriedClock,
      epoch: () => projection.epoch,
      gatewaySlices: () => this.#slices(),
      onPoll: () => undefined,
    })
    this.deps = {
      kube,
      apiKeys: world.objects.informer(apiKeys),
      keyring,
      projection,
      acknowledgements,
      vault: new CredentialVault(),
      changes: new ChangeSignals(),
      calm: new Calm(hurriedClock),
      recordEvent: (object, reason, note) => world.events.push({ name: object.metadata.name, reason, note }),
      clock: { now: () => world.now, monotonic: () => world.now, after: () => () => undefined },
      assertLeading,
      publicURL: 'http://gateway.example',
      revocationWaitMs: 30_000,
      onRevoked: () => undefined,
      onGone: () => void (this.#isGone = true),
    }
  }

  /** Whether its kill has come. */
  get dead(): boolean {
    return this.#dead
  }

  async start(): Promise<void> {
    await this.deps.keyring.load()
    await revokeOrphans(this.deps, everywhere, ignoreRefusal)
    await this.deps.projection.start(keyRecords(this.deps), this.deps.keyring.rev)
    this.deps.acknowledgements.start()
  }

  /** Reconciles until nothing is left to do at once. */
  async settle(ref: ObjectRef = { namespace: 'shop', name: 'bot' }): Promise<void> {
    for (let round = 0; round < 5; round++) {
      const result = await reconcile(ref, this.deps)
      if (result.requeueAfterMs === undefined || result.requeueAfterMs > 1000) break
    }
    if (this.#isGone) await sweep(this.deps, everywhere, ignoreRefusal)
    this.#isGone = false
  }

  stop(): void {
    this.#dead = true
    this.deps.projection.stop()
    this.deps.acknowledgements.stop()
  }

  #slices() {
    const names = [...this.#world.pods, ...this.#world.silentPods]
    return [
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        addressType: 'IPv4',
        metadata: { name: 'gateway-1', namespace: 'headgate' },
        endpoints: names.map((name) => ({ addresses: ['10.0.0.1'], conditions: { ready: true }, targetRef: { kind: 'Pod', name } })),
      },
    ]
  }

  async #guard<T>(name: string, kill: KillAt | undefined, write: () => Promise<T>, mayBeLate: boolean): Promise<T> {
    this.#assertAlive()
    const hit = kill?.write === this.#written++ ? kill.when : undefined
    if (hit === 'late' && mayBeLate) this.#world.late.push(write)
    if (hit === 'before' || hit === 'late') this.#dead = true
    this.#assertAlive()
    this.#world.writes.push(name)
    const answer = await write()
    if (hit !== undefined) this.#dead = true
    this.#assertAlive()
    return answer
  }

  #assertAlive(): void {
    if (this.#dead) throw new Killed()
  }
}

const everywhere = (): boolean => true
const ignoreRefusal = (): void => undefined

type Guard = <T>(name: string, write: () => Promise<T>, mayBeLate?: boolean) => Promise<T>
/** A rebuild is many calls, and a process that was killed makes no further ones. */
const NEVER_LATE = false

function killableKube(objects: ObjectStore, guard: Guard): KubePort {
  return {
    get: (resource, ref) => objects.get(resource, ref),
    list: (resource, namespace) => objects.list(resource, namespace),
    create: <T extends KubeObject>(resource: Resource<T>, object: T) =>
      guard(`create ${resource.plural} ${object.metadata.name}`, () => objects.create(resource, object)),
    update: <T extends KubeObject>(resource: Resource<T>, object: T) =>
      guard(`update ${resource.plural} ${object.metadata.name}`, () => objects.update(resource, object)),
    patch: (resource, ref, operations) => guard(`patch ${resource.plural} ${ref.name}`, () => objects.patch(resource, ref, operations)),
    applyStatus: <T extends KubeObject>(resource: Resource<T>, object: T) =>
      guard(`status ${resource.plural} ${object.metadata.name}`, () => objects.applyStatus(resource, object)),
    remove: (resource, ref, preconditions) =>
      guard(`remove ${resource.plural} ${ref.name}`, () => objects.remove(resource, ref, preconditions)),
  }
}

function killableStore(world: OperatorWorld, guard: Guard): ProjectionStore {
  const up = <T>(ask: () => Promise<T>): Promise<T> => (world.storeDown ? Promise.reject(new Error('store is down')) : ask())
  return {
    meta: (): Promise<ProjectionMeta | undefined> => up(() => world.memory.meta()),
    write: (fence: number, epoch: string, changes: readonly ProjectionChange[], floor: number): Promise<WriteOutcome> =>
      up(() => guard('store write', () => world.memory.write(fence, epoch, changes, floor))),
    rebuild: (fence, epoch, rev, records) =>
      up(() => guard('store rebuild', () => world.memory.rebuild(fence, epoch, rev, records), NEVER_LATE)),
    ids: (epoch: string, kind: RecordKind) => up(() => world.memory.ids(epoch, kind)),
    record: (epoch: string, kind: RecordKind, id: string) => up(() => world.memory.record(epoch, kind, id)),
    liveProcesses: () => up(() => acknowledging(world)),
    close: () => Promise.resolve(),
  }
}

async function acknowledging(world: OperatorWorld): Promise<readonly LiveProcess[]> {
  const { epoch, rev } = await world.applied()
  return world.pods.map((pod) => ({
    process: `${pod}/1`,
    pod,
    acknowledgement: {
      epoch,
      rev,
      source: 'Redis',
      ready: true,
      version: 'test',
      schemas: [1],
      bad: [],
      backends: {},
    },
  }))
}
