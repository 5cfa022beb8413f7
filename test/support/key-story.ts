/**
 * Changes of ApiKeys by users and failures of the operator, for property tests over OperatorWorld; and the rules that hold at every moment
 * of a story and at its end.
 */
import { isDeepStrictEqual } from 'node:util'
import { decodeKeyRecord, encodeKeyRecord } from '#contract/records/key-record.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { ApiKey, ApiKeySpec } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { currentVerifier, entryOf, recordText } from '../../operator/kinds/apikey/keyring-entry.ts'
import { apiKeyRow } from '../../operator/kinds/apikey/kind.ts'
import { KubeError, type ObjectRef } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { GatewayTable } from './gateway-table.ts'
import { Broken, IssuedValues } from './issued-values.ts'
import { NewerEntry } from './newer-entry.ts'
import { SHOP } from './objects.ts'
import type { KillAt, OperatorProcess, WorldCall } from './operator-process.ts'
import { OperatorWorld } from './operator-world.ts'
import { writer } from './records.ts'

type Deed = 'delete' | 'delete Secret' | 'edit Secret' | 'delete by force' | 'newer entry'
/** Failures that last until they are undone. */
type Disturbance =
  | ('watch cut off' | 'watch back' | 'events doubled' | 'answers lost')
  | ('store down' | 'store up' | 'pod silent' | 'pod well' | 'quota full' | 'quota raised')
type Accident = Disturbance | 'restart' | 'late calls arrive' | 'settle' | 'store wiped' | 'snapshot' | 'stale failover'

/** One event of a story. Names are those of ApiKeys in `shop`. */
export type Happening =
  | { readonly on: 'apply'; readonly name: string; readonly spec: Partial<ApiKeySpec> }
  /** Two edits before the operator sees the first. */
  | { readonly on: 'apply twice'; readonly name: string; readonly spec: Partial<ApiKeySpec>; readonly then: Partial<ApiKeySpec> }
  | { readonly on: Deed; readonly name: string }
  | { readonly on: Accident }
  | { readonly on: 'kill'; readonly kill: KillAt }
  | { readonly on: 'lose shard' | 'damage shard'; readonly shard: number }
  | { readonly on: 'time passes'; readonly seconds: number }

const refOfName = (name: string): ObjectRef => ({ namespace: SHOP, name })
const USERS_OWN = Buffer.from('put there by a user').toString('base64')
/** Longer than every back-off of the operator, the bound of a deletion, and the interval of its regular checks. */
const LONG_SECONDS = 700
const LOST_ANSWERS = 3
const FOREIGN: Secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'taken', namespace: SHOP, labels: { app: 'foreign' } },
  data: { SERVICE_API_KEY: Buffer.from('foreign').toString('base64') },
}

export class KeyStory {
  readonly world = new OperatorWorld([apiKeyRow])
  readonly #table = new GatewayTable(this.world)
  readonly #values = new IssuedValues(this.world, this.#table, SHOP)
  readonly #lost = { shard: false, store: false }
  /** Deletions that cannot be proven now: until when their objects must stay, by uid. */
  readonly #held = new Map<string, { readonly name: string; readonly untilMs: number }>()
  readonly #newer = new NewerEntry(this.world)
  #process: OperatorProcess | undefined
  #foreign: Secret | undefined
  #snapshot: MemoryProjection | undefined
  #hasSilentPod = false
  #isQuotaFull = false
  #answersToLose = 0
  /** Whether a call of a dead process was under way when a part of the keyring was lost. */
  #isOlderOnItsWay = false

  /** Puts a foreign Secret under the name `taken`, for a key that wants it. */
  async begin(): Promise<void> {
    this.world.applied = () => this.#table.applied()
    this.world.beforeCall = (call) => this.#refuse(call)
    this.world.afterCall = (call) => this.#loseAnswer(call)
    this.#foreign = await this.world.objects.create(secrets, FOREIGN)
    await this.#settle()
  }

  /** @throws Broken when a rule does not hold then */
  async happens(happening: Happening): Promise<void> {
    await this.#act(happening)
    await this.#settle()
    await this.#check()
  }

  /** Undoes every failure and lets time pass. @throws Broken when a rule of a world at rest does not hold */
  async end(): Promise<void> {
    this.#isQuotaFull = false
    this.#answersToLose = 0
    this.world.storeDown = false
    this.world.watches.isDoubled = false
    this.world.thawWatch()
    await this.world.serve(this.world.pods)
    await this.#landLate()
    await this.#rest()
    await this.#check()
    await this.#checkRest()
  }

  stop(): Promise<void> {
    return this.world.stop()
  }

  async #act(happening: Happening): Promise<void> {
    switch (happening.on) {
      case 'apply':
        return await this.#apply(happening.name, happening.spec)
      case 'apply twice':
        await this.#apply(happening.name, happening.spec)
        return await this.#apply(happening.name, happening.then)
      case 'kill':
        this.#process?.kill()
        this.#process = this.world.launch({}, happening.kill)
        return
      case 'lose shard':
      case 'damage shard':
        return await this.#harmShard(happening.shard, happening.on === 'damage shard')
      case 'time passes':
        return await this.world.pass(happening.seconds)
      default:
        return await ('name' in happening ? this.#do(happening.on, happening.name) : this.#cause(happening.on))
    }
  }

  /** Applies the CEL rules: Revoked is final, and the name of the Secret is immutable. */
  async #apply(name: string, { secret, ...spec }: Partial<ApiKeySpec>): Promise<void> {
    const present = await this.world.objects.get(apiKeys, refOfName(name))
    if (present?.metadata.deletionTimestamp !== undefined) return
    const wanted = present ? present.spec.secret : secret
    const state = present?.spec.state === 'Revoked' ? 'Revoked' : (spec.state ?? 'Active')
    await this.world.applyKey({ ...spec, state, ...(wanted ? { secret: wanted } : {}) }, name, SHOP)
    this.#values.touched(name)
  }

  async #do(deed: Deed, name: string): Promise<void> {
    const key = await this.world.objects.get(apiKeys, refOfName(name))
    if (!key) return
    if (deed === 'newer entry') return await this.#upgrade(key)
    if (deed === 'delete Secret' || deed === 'edit Secret') return await this.#meddle(key, deed)
    this.#values.touched(name)
    if (deed === 'delete') this.#expectProof(key)
    else this.#held.delete(key.metadata.uid ?? '') // without its finalizer the object need not wait for a proof
    if (deed !== 'delete' && key.metadata.finalizers)
      await this.world.objects.patch(apiKeys, refOfName(name), [{ op: 'remove', path: '/metadata/finalizers' }])
    await this.world.objects.remove(apiKeys, refOfName(name))
  }

  /** Records until when the object of a deleted key must stay, if the gateways cannot prove the revocation now: until the bound of the wait. */
  #expectProof({ metadata, status }: ApiKey): void {
    const isProvable = !this.world.storeDown && !this.#hasSilentPod
    if (isProvable || metadata.deletionTimestamp !== undefined || !metadata.finalizers || status?.keyID === undefined) return
    this.#held.set(metadata.uid ?? '', { name: metadata.name, untilMs: this.world.now + 29_000 })
  }

  async #meddle(key: ApiKey, deed: 'delete Secret' | 'edit Secret'): Promise<void> {
    const { objects } = this.world
    const ref = refOfName(key.spec.secret?.name ?? key.metadata.name)
    const secret = await objects.get(secrets, ref)
    if (!secret?.metadata.ownerReferences?.some(({ uid }) => uid === key.metadata.uid)) return
    if (deed === 'delete Secret') await objects.remove(secrets, ref)
    else await objects.update(secrets, { ...secret, data: { ...secret.data, SERVICE_API_KEY: USERS_OWN } })
  }

  async #upgrade(key: ApiKey): Promise<void> {
    const uid = key.metadata.uid ?? ''
    if (!(await this.#newer.write(uid))) return
    this.#values.unreadable(uid)
    this.#held.delete(uid)
  }

  async #cause(accident: Accident): Promise<void> {
    const { world } = this
    switch (accident) {
      case 'restart':
        await world.stopProcesses()
        this.#process = undefined
        return
      case 'late calls arrive':
        return await this.#landLate()
      case 'settle':
        return await this.#rest()
      case 'snapshot':
        this.#snapshot = await copyOf(world)
        return
      case 'stale failover':
        return this.#replaceStore(this.#snapshot)
      case 'store wiped':
        return this.#replaceStore(new MemoryProjection({ now: () => world.now }))
      default:
        return await this.#disturb(accident)
    }
  }

  async #disturb(accident: Disturbance): Promise<void> {
    const { world } = this
    const disturbances: Record<Disturbance, () => Promise<void> | void> = {
      'answers lost': () => void (this.#answersToLose = LOST_ANSWERS),
      'events doubled': () => void (world.watches.isDoubled = true),
      'watch cut off': () => world.freezeWatch('Standbys'),
      'watch back': () => world.thawWatch(),
      'quota full': () => void (this.#isQuotaFull = true),
      'quota raised': () => void (this.#isQuotaFull = false),
      'store down': () => void (world.storeDown = true),
      'store up': () => void (world.storeDown = false),
      'pod silent': () => this.#silence(true),
      'pod well': () => this.#silence(false),
    }
    await disturbances[accident]()
    if (accident === 'store up' || accident === 'pod well') this.#held.clear()
  }

  async #silence(isSilent: boolean): Promise<void> {
    this.#hasSilentPod = isSilent
    await this.world.serve(this.world.pods, isSilent ? ['gateway-9'] : [])
  }

  #replaceStore(memory: MemoryProjection | undefined): void {
    if (!memory) return
    this.world.memory = memory
    this.#snapshot = undefined
    this.#loses('store')
  }

  async #harmShard(shard: number, damage: boolean): Promise<void> {
    const ref = { namespace: 'headgate', name: `hg-keyring-2-${shard}` }
    const secret = await this.world.objects.get(secrets, ref)
    if (!secret) return
    this.#newer.lost(ref.name)
    this.#isOlderOnItsWay ||= this.world.late.length > 0
    if (damage) await this.world.objects.update(secrets, { ...secret, data: { records: 'AAAA' } })
    else await this.world.objects.remove(secrets, ref)
    this.#loses('shard')
  }

  /**
   * Lets calls of dead processes arrive. One that began before a part of the keyring was lost may create its Secret again, with values that were
   * replaced: nothing tells it from the write of a newer leader, so keys of this part are at risk.
   */
  async #landLate(): Promise<void> {
    await this.world.landLate()
    if (this.#isOlderOnItsWay) this.#values.endangered()
    this.#isOlderOnItsWay = false
  }

  #loses(what: 'shard' | 'store'): void {
    this.#lost[what] = true
    if (what === 'shard') this.#values.keyringLost()
    if (this.#lost.shard && this.#lost.store) this.#values.endangered()
  }

  #refuse(call: WorldCall): void {
    if (this.#isQuotaFull && call.verb === 'create' && call.plural === 'secrets' && call.namespace === SHOP)
      throw new KubeError('QuotaExceeded', 403, 'exceeded quota: secrets')
  }

  #loseAnswer({ verb, plural }: WorldCall): void {
    if (this.#answersToLose === 0 || plural === 'store' || verb === 'get' || verb === 'list') return
    this.#answersToLose -= 1
    throw new KubeError('Unreachable', 0, 'the answer was lost')
  }

  /** Replaces a process that was killed. */
  async #settle(): Promise<void> {
    this.#process ??= this.world.launch()
    await this.world.settle()
    if (!this.#process.isDead) return
    this.#process = undefined
    await this.#settle()
  }

  async #rest(): Promise<void> {
    if (this.world.storeDown) return
    for (let round = 0; round < 3; round += 1) {
      await this.#settle()
      await this.world.pass(LONG_SECONDS)
      await this.#settle()
    }
    // a process that sees only the ApiKeys restores the lost data
    if (!this.world.watches.isFrozen) Object.assign(this.#lost, { shard: false, store: false })
  }

  async #check(): Promise<void> {
    await this.#table.follow()
    await this.#values.look(!this.#lost.shard || !this.#lost.store)
    if (!isDeepStrictEqual(await this.world.secret('taken'), this.#foreign)) throw new Broken('a foreign Secret was touched')
    if (!(await this.#newer.isIntact())) throw new Broken('an entry of a newer version was touched')
    for (const [uid, { name, untilMs }] of this.#held) {
      const key = await this.world.objects.get(apiKeys, refOfName(name))
      if (this.world.now < untilMs && key?.metadata.uid !== uid) throw new Broken(`ApiKey ${name} went before its revocation was proven`)
    }
  }

  async #checkRest(): Promise<void> {
    const keys = await this.world.objects.list(apiKeys, SHOP)
    const undead = keys.find(({ metadata }) => metadata.deletionTimestamp !== undefined)
    if (undead) throw new Broken(`the deletion of ${undead.metadata.name} does not end`)
    if (this.#process?.operator.blocked !== undefined) throw new Broken(`the operator does not work: ${this.#process.operator.blocked}`)
    const entries = await this.world.keyringEntries()
    this.#checkProjection(entries, new Map(keys.map((key) => [key.metadata.uid ?? '', key])))
    this.#values.checkServed(keys)
    await this.#checkStill()
    const text = JSON.stringify([keys, this.world.events, this.world.logs, entries, this.#table.records])
    for (const value of this.#values.values()) if (text.includes(value)) throw new Broken('a value stands outside of its Secret')
  }

  #checkProjection(entries: readonly KeyringEntry[], keys: ReadonlyMap<string, ApiKey>): void {
    const wanted = new Map<string, unknown>()
    for (const entry of entries) {
      if (entry.deletedMs !== null || entry.uid === this.#newer.uid) continue
      const asked = entryOf(checkEntry(entry, keys), { verifiers: entry.verifiers, revision: 0, version: 1, former: entry })
      wanted.set(entry.uid, decodeKeyRecord(recordText(asked, 1) ?? ''))
    }
    const others = this.#table.records.filter(({ uid }) => uid !== this.#newer.uid)
    const present = new Map(others.map((record) => [record.uid, { ...record, revision: 0 }]))
    if (!isDeepStrictEqual(present, wanted)) throw new Broken('the projection is not what keyring and manifests say')
  }

  async #checkStill(): Promise<void> {
    const [writes, meta] = [this.world.writes.length, await this.world.memory.meta()]
    await this.world.pass(LONG_SECONDS)
    await this.#settle()
    const written = this.world.writes.slice(writes)
    if (written.length > 0) throw new Broken(`a second pass writes: ${written.join(', ')}`)
    if (!isDeepStrictEqual(await this.world.memory.meta(), meta)) throw new Broken('a second pass writes to the projection')
  }
}

/** Asserts that an entry has its object, no minted key is left over, and no key exists whose Secret cannot be written. @returns its ApiKey */
function checkEntry(entry: KeyringEntry, keys: ReadonlyMap<string, ApiKey>): ApiKey {
  const key = keys.get(entry.uid)
  if (!key) throw new Broken(`an entry of ${entry.name} has no ApiKey`)
  const current = currentVerifier(entry)
  if (current?.state === 'Minted') throw new Broken(`a minted key of ${entry.name} was left over`)
  const isHomeless = key.spec.secret?.name === FOREIGN.metadata.name
  if (isHomeless && current !== undefined) throw new Broken('a key was made that has nowhere to stand')
  return key
}

async function copyOf(world: OperatorWorld): Promise<MemoryProjection | undefined> {
  const meta = await world.memory.meta()
  if (!meta) return undefined
  const copy = new MemoryProjection({ now: () => world.now })
  const records = await world.keyRecords()
  await copy.rebuild(
    writer(meta.fence, meta.installation),
    meta.epoch,
    meta.revision,
    records.map((record) => ({ kind: 'key', op: 'put', id: record.uid, text: encodeKeyRecord(record) })),
  )
  return copy
}
