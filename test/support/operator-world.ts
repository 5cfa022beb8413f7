/**
 * The whole operator (`Operator`) in a world of one object store, one projection, gateways that acknowledge what they hold, and a
 * clock that only the test moves. Calls can be refused, held up, lost or killed; watches can be late, doubled or frozen.
 */
import { isStandIn } from '../../operator/kinds/apikey/unread-keys.ts'
import { decodeKeyRecord, type KeyRecord } from '#contract/records/key-record.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import { decodeModelRecord, type ModelRecord } from '#contract/records/model-record.ts'
import { SHARDS_LABEL, type ShardSet } from '#contract/records/mounted-folder.ts'
import type { RecordKind } from '#contract/records/record-kinds.ts'
import type { Acknowledgement } from '#contract/records/revision-log.ts'
import type { ApiKey, ApiKeySpec } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import type { SubjectUsage } from '../../operator/books/subject-ledger.ts'
import type { KindRow } from '../../operator/kinds/kind.ts'
import { keyringCodec } from '../../operator/shards/sets.ts'
import { KINDS } from '../../operator/kinds/kinds.ts'
import { KubeError, type KubeObject, refOf, type Resource } from '#kube/port.ts'
import { endpointSlices, type Secret, secrets, SERVICE_LABEL } from '#kube/resources.ts'
import type { OperatorLedgerStore } from '../../operator/books/ledger-store.ts'
import type { OperatorSettings } from '../../operator/operator-deps.ts'
import type { LiveProcess } from '../../operator/projection/store.ts'
import { MemoryLedgerStore } from '../../gateway/limits/memory-ledger.ts'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { MemoryUsage } from '../../standalone/memory-usage.ts'
import { ObjectStore } from '../../standalone/object-store.ts'
import { SHOP } from './objects.ts'
import { type KillAt, OperatorProcess, type WorldCall } from './operator-process.ts'
import { ManualClock } from './manual-clock.ts'
import { PendingWork } from './pending-work.ts'
import { heartbeat } from './records.ts'
import { requireDeclared } from './declared-status.ts'
import { type Frozen, WorldWatches } from './world-watches.ts'

const OWN = 'headgate'
const SETTINGS: OperatorSettings = {
  namespace: OWN,
  gatewayService: 'gateway',
  keyringShards: 2,
  mountedShards: 2,
  publicURL: 'http://gateway.example',
  revocationWaitMs: 30_000,
  retirement: undefined,
  watchNamespaces: [],
  formerNamespaces: [],
  maxApiKeysPerNamespace: 2_000,
  maxModelBytesPerNamespace: 2_097_152,
  maxServedModelsPerNamespace: 200,
  publishingNamespaces: [OWN],
  clusterAddressNamespaces: [],
  accountRequiredNamespaces: [],
  unprovenHashNamespaces: ['*'],
  hasAccounts: true,
  billingCurrency: 'EUR',
  billingLowBalance: undefined,
  redisTakeOver: false,
  allowLoopback: false,
}
/** The longest wait of the operator that no event ends: for 5 s, marks ride along and new keys wait for gateways. */
const QUIET_MS = 6_000
/** Longest simulated time until the operators are idle. Only a busy loop takes longer. */
const LONGEST_MS = 3_600_000

/** The epoch and revision that the gateways have applied. */
export interface Applied {
  readonly epoch: string
  readonly revision: number
}

/** One Event as the recorder got it. */
export interface RecordedEvent {
  readonly name: string
  readonly reason: string
  readonly note: string
}

/** World of one test. End it with `stop`. */
export class OperatorWorld {
  readonly clock = new ManualClock()
  readonly objects: ObjectStore
  readonly watches: WorldWatches
  memory = new MemoryProjection({ now: () => this.now })
  /** What gateways have counted for accounts. */
  readonly usage = new MemoryUsage(() => this.now)
  /** Where gateways count the spend of accounts. */
  balances = new MemoryLedgerStore(() => Math.floor(this.now))
  /** The ledger's store for processes that start from now on; undefined: their own memory. */
  ledger: OperatorLedgerStore | undefined
  /** Redis does not answer. */
  storeDown = false
  /** Pods that serve and acknowledge. */
  pods: readonly string[] = ['gateway-0', 'gateway-1']
  /** What those pods have applied; by default everything that the store holds. */
  applied: () => Promise<Applied> = async () => {
    const { epoch = '', revision = 0 } = (await this.memory.meta()) ?? {}
    return { epoch, revision }
  }
  /** Further fields of their heartbeats. */
  reports: Partial<Acknowledgement> = {}
  /** Whether the operator may read the labels of namespaces. */
  mayReadNamespaces = true
  /** Whether the API server refuses to list namespaces although the operator counts on it; for processes that start from now on. */
  refusesLabels = false
  /** Namespaces whose Role is missing; for processes that start from now on. */
  readonly refusedNamespaces = new Set<string>()
  /** Runs before each call takes effect; may throw or wait. */
  beforeCall: (call: WorldCall) => void | Promise<void> = () => undefined
  /** Runs after a call has taken effect. A throw is a lost answer. */
  afterCall: (call: WorldCall) => void | Promise<void> = () => undefined
  readonly events: RecordedEvent[] = []
  readonly logs: string[] = []
  /** Every write to the API server, `<verb> <plural> <name>`. */
  readonly writes: string[] = []
  /** Calls of killed processes that have not arrived yet. */
  readonly late: Array<() => Promise<unknown>> = []
  readonly #rows: readonly KindRow[]
  readonly #work = new PendingWork()
  readonly #processes: OperatorProcess[] = []
  readonly #usageListeners: Array<(uid: string, usage: SubjectUsage) => void> = []
  #fence = 0
  #uids = 0
  #lastCallMs = 0

  /** @param rows the kinds that the operator reconciles */
  constructor(rows: readonly KindRow[] = KINDS) {
    this.#rows = rows
    this.objects = new ObjectStore({ now: () => this.now, newUid: () => this.#newUid(), persist: requireDeclared })
    this.watches = new WorldWatches(this.objects, this.clock)
  }

  /** ms since 1970. Setting it corrects the wall clock alone. */
  get now(): number {
    return this.clock.now()
  }

  set now(ms: number) {
    this.clock.setWall(ms)
  }

  /** Refuses the next five writes of one set of Secrets, as if another process wrote them all the time. */
  conflictFive(set: ShardSet): void {
    let left = 5
    this.beforeCall = ({ verb, name }) => {
      if (verb !== 'update' || !name.startsWith(`hg-${set}-`) || left === 0) return
      left -= 1
      throw new KubeError('Conflict', 409, 'the object has been modified')
    }
  }

  /** Refuses some calls from now on. */
  refuse(isMeant: (call: WorldCall) => boolean, error: KubeError): void {
    this.beforeCall = (call) => {
      if (isMeant(call)) throw error
    }
  }

  /** Starts a process that leads, without waiting for anything. */
  launch(settings: Partial<OperatorSettings> = {}, kill?: KillAt): OperatorProcess {
    const process = new OperatorProcess(this, {
      settings: { ...SETTINGS, ...settings },
      rows: this.#rows,
      fence: this.nextFence(0),
      kill,
    })
    this.#processes.push(process)
    return process
  }

  /** Starts a process that leads, and settles. A former one is not stopped. */
  async start(settings: Partial<OperatorSettings> = {}, kill?: KillAt): Promise<OperatorProcess> {
    const process = this.launch(settings, kill)
    await this.settle()
    return process
  }

  /** Stops the running processes, and starts another one on their data. */
  async restart(settings: Partial<OperatorSettings> = {}): Promise<OperatorProcess> {
    await this.stopProcesses()
    return await this.start(settings)
  }

  /** Ends every process cleanly. */
  async stopProcesses(): Promise<void> {
    for (const process of this.#processes.splice(0)) await process.stop()
  }

  /** Ends every process, and the world. */
  async stop(): Promise<void> {
    for (const process of this.#processes) process.kill()
    await this.#work.drained()
    this.#work.end()
  }

  /** A fencing token above all others. */
  nextFence(stored: number): number {
    this.#fence = Math.max(this.#fence, stored) + 1
    return this.#fence
  }

  /** Advances time until the operators have nothing to do: no running call that can end, and no call but polls for 6 s. */
  async settle(): Promise<void> {
    await this.#work.drained()
    const startedMs = this.clock.monotonic()
    this.#lastCallMs = startedMs
    for (;;) {
      const leftMs = this.#lastCallMs + QUIET_MS - this.clock.monotonic()
      if (this.clock.nextInMs > leftMs) return
      this.clock.fireNext()
      await this.#work.drained()
      if (this.clock.monotonic() - startedMs > LONGEST_MS)
        throw new Error(`the operator does not settle: ${this.writes.slice(-5).join(', ')}`)
    }
  }

  /** Waits until everything that needs no time has run. */
  drained(): Promise<void> {
    return this.#work.drained()
  }

  /** Lets time go on until `work` is done. */
  async during<R>(work: Promise<R>): Promise<R> {
    let isDone = false
    const over = (): void => void (isDone = true)
    work.then(over, over)
    for (await this.#work.drained(); !isDone && this.clock.nextInMs < LONGEST_MS; await this.#work.drained()) this.clock.fireNext()
    return await work
  }

  /** Lets time pass at once, as in a suspended machine. Timers that became due run afterwards. */
  async pass(seconds: number): Promise<void> {
    await this.#work.drained()
    this.clock.skip(seconds * 1_000)
    for (await this.#work.drained(); this.clock.nextInMs <= 0; await this.#work.drained()) this.clock.fireNext()
  }

  /** A pause on the clock of this world, for hooks that hold calls up. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve))
  }

  /** Freezes the watches: processes see no change, and a process that starts sees the objects as now. Standbys: running ones go on. @param plural one kind */
  freezeWatch(whose: Frozen = 'Everyone', plural?: string): void {
    this.watches.freeze(whose, plural)
  }

  /** Restarts the watches, each with a list. */
  thawWatch(): void {
    this.watches.thaw()
  }

  /** Calls of killed processes arrive now; no process gets their answers. */
  async landLate(): Promise<void> {
    await Promise.allSettled(this.late.splice(0).map((write) => write()))
  }

  /** Pods that serve: those that acknowledge, and those without heartbeats. */
  async serve(pods: readonly string[], silent: readonly string[] = []): Promise<void> {
    this.pods = pods
    const endpoints = [...pods, ...silent].map((name) => ({
      addresses: ['10.0.0.1'],
      conditions: { ready: true },
      targetRef: { kind: 'Pod', name },
    }))
    const metadata = { name: 'gateway-1', namespace: OWN, labels: { [SERVICE_LABEL]: 'gateway' } }
    await this.apply(endpointSlices, { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4', metadata, endpoints })
  }

  /** Creates, or replaces spec, data, labels and annotations of, an object. */
  async apply<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const present = await this.objects.get(resource, refOf(object))
    if (!present) return this.objects.create(resource, object)
    return this.objects.update(resource, { ...present, ...object, metadata: { ...present.metadata, ...object.metadata } })
  }

  /** Creates an Active ApiKey for all models, or replaces the spec of one. */
  applyKey(spec: Partial<ApiKeySpec> = {}, name = 'bot', namespace = SHOP): Promise<ApiKey> {
    const full: ApiKeySpec = { state: 'Active', models: ['*'], ...spec }
    return this.apply(apiKeys, { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata: { name, namespace }, spec: full })
  }

  /** The same, and settles. @returns the value in its Secret */
  async settledKey(spec: Partial<ApiKeySpec> = {}, name = 'bot', namespace = SHOP): Promise<string> {
    await this.applyKey(spec, name, namespace)
    await this.settle()
    return await this.value(name, namespace)
  }

  /** Starts an operator and issues one key. @returns the value in its Secret */
  async issuedKey(spec: Partial<ApiKeySpec> = {}): Promise<string> {
    await this.start()
    return await this.settledKey(spec)
  }

  async key(name = 'bot', namespace = SHOP): Promise<ApiKey> {
    const found = await this.objects.get(apiKeys, { namespace, name })
    if (!found) throw new Error(`no ApiKey ${namespace}/${name}`)
    return found
  }

  secret(name = 'bot', namespace = SHOP): Promise<Secret | undefined> {
    return this.objects.get(secrets, { namespace, name })
  }

  /** Data of a Secret in plain text; undefined when there is none. */
  async data(name = 'bot', namespace = SHOP): Promise<Record<string, string> | undefined> {
    const found = await this.secret(name, namespace)
    return found && Object.fromEntries(Object.entries(found.data ?? {}).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]))
  }

  /** Value in the user's Secret; '' when there is none. */
  async value(name = 'bot', namespace = SHOP): Promise<string> {
    return (await this.data(name, namespace))?.['SERVICE_API_KEY'] ?? ''
  }

  /** `<status> <reason>` of one condition; '' while there is none. */
  async condition(resource: Resource, name: string, type: string): Promise<string> {
    const found = (await this.#conditions(resource, name)).find((condition) => condition.type === type)
    return found ? `${found.status} ${found.reason}` : ''
  }

  /** The message of one condition. */
  async message(resource: Resource, name: string, type: string): Promise<string> {
    return (await this.#conditions(resource, name)).find((condition) => condition.type === type)?.message ?? ''
  }

  /** Every key record that gateways hold now, without the one that no version reads: it stands for keys that are lacking. */
  async keyRecords(): Promise<KeyRecord[]> {
    return (await this.texts('key')).filter((text) => !isStandIn((JSON.parse(text) as KeyRecord).uid)).map(decodeKeyRecord)
  }

  async modelRecords(): Promise<ModelRecord[]> {
    return (await this.texts('model')).map(decodeModelRecord)
  }

  /** Every record of one kind, as the store holds it. */
  async texts(kind: RecordKind): Promise<string[]> {
    const meta = await this.memory.meta()
    const found: string[] = []
    if (meta) await this.memory.scan(meta.epoch, kind, (batch) => void found.push(...batch.map(([, text]) => text)))
    return found
  }

  /** Secrets of one set of shards. */
  shards(set: ShardSet): Promise<readonly Secret[]> {
    return this.objects.list(secrets, OWN, `${SHARDS_LABEL}=${set}`)
  }

  /** What is durable in the keyring and can be read; nothing of a damaged shard. */
  async keyringEntries(): Promise<KeyringEntry[]> {
    const codec = keyringCodec(() => 1)
    const decoded = await Promise.allSettled((await this.shards('keyring')).map(({ data }) => codec.decode(data ?? {})))
    const readable = decoded.flatMap((shard) => (shard.status === 'fulfilled' ? shard.value.entries : []))
    return readable.flatMap(({ entry }) => entry ?? [])
  }

  /** The heartbeats that operators see. */
  async liveProcesses(): Promise<readonly LiveProcess[]> {
    const said = { ...(await this.applied()), ...this.reports }
    return this.pods.map((pod) => heartbeat(pod, said))
  }

  /** Listeners for the answers of the ledger. */
  onUsage(listener: (uid: string, usage: SubjectUsage) => void): void {
    this.#usageListeners.push(listener)
  }

  /** Reports an answer of the ledger about a key. */
  async readUsage(usage: SubjectUsage, name = 'bot'): Promise<void> {
    const uid = (await this.key(name)).metadata.uid ?? ''
    for (const listener of this.#usageListeners) listener(uid, usage)
  }

  /** Records that a process has made a call other than a poll. */
  noteCall(): void {
    this.#lastCallMs = this.clock.monotonic()
  }

  /** The same in every run: which shard an entry belongs to depends on it. */
  #newUid(): string {
    this.#uids += 1
    return `00000000-0000-4000-8000-${String(this.#uids).padStart(12, '0')}`
  }

  async #conditions(resource: Resource, name: string): Promise<ReadonlyArray<Record<'type' | 'status' | 'reason' | 'message', string>>> {
    type Conditioned = KubeObject & {
      readonly status?: { readonly conditions?: ReadonlyArray<Record<'type' | 'status' | 'reason' | 'message', string>> }
    }
    const object = await this.objects.get(resource as Resource<Conditioned>, { namespace: resource.namespaced ? SHOP : '', name })
    return object?.status?.conditions ?? []
  }
}
