/**
 * What users do to ApiKeys and what befalls the operator, for property tests over OperatorWorld; and what must hold at every moment of it
 * and at its end.
 */
import { isDeepStrictEqual } from 'node:util'
import type { KeyringLine } from '../../gateway/shared/keyring-line.ts'
import type { ApiKey, ApiKeySpec } from '../../operator/api/apikey.ts'
import { currentVerifier, lineOf, recordText } from '../../operator/apikey/policy.ts'
import { sweep } from '../../operator/apikey/sweep.ts'
import type { ObjectRef } from '../../operator/kube/port.ts'
import { apiKeys, type Secret, secrets } from '../../operator/kube/resources.ts'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { GatewayTable } from './gateway-table.ts'
import { Broken, IssuedValues } from './issued-values.ts'
import { Killed, type KillAt, type OperatorProcess, OperatorWorld } from './operator-world.ts'
import { waitFor } from './wait-for.ts'

/** What a user does to one ApiKey besides applying it. */
type Deed = 'delete' | 'delete Secret' | 'edit Secret' | 'delete by force'
/** What befalls the operator or its store. */
type Accident =
  | ('restart' | 'late calls arrive' | 'settle')
  | ('store down' | 'store up' | 'store wiped' | 'snapshot' | 'stale failover')
  | ('pod silent' | 'pod well')

/** One thing that happens. Names are those of ApiKeys in `shop`. */
export type Happening =
  | { readonly on: 'apply'; readonly name: string; readonly spec: Partial<ApiKeySpec> }
  | { readonly on: Deed; readonly name: string }
  | { readonly on: Accident }
  | { readonly on: 'kill'; readonly kill: KillAt }
  | { readonly on: 'lose shard' | 'damage shard'; readonly shard: number }
  | { readonly on: 'time passes'; readonly seconds: number }

const NAMESPACE = 'shop'
const refOfName = (name: string): ObjectRef => ({ namespace: NAMESPACE, name })
const USERS_OWN = Buffer.from('put there by a user').toString('base64')
/** Longest wait of a deletion for gateways, and some. */
const REVOCATION_MS = 31_000
const FOREIGN: Secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'taken', namespace: NAMESPACE, labels: { app: 'foreign' } },
  data: { SERVICE_API_KEY: Buffer.from('foreign').toString('base64') },
}

/** One run. */
export class KeyStory {
  readonly world = new OperatorWorld()
  readonly #table = new GatewayTable(this.world)
  readonly #values = new IssuedValues(this.world, this.#table, NAMESPACE)
  readonly #names = new Set<string>()
  readonly #lost = { shard: false, store: false }
  /** Deletions that cannot be proven now: until when their objects must stay, by uid. */
  readonly #held = new Map<string, { readonly name: string; readonly untilMs: number }>()
  #operator: OperatorProcess | undefined
  #kill: KillAt | undefined
  #foreign: Secret | undefined
  #snapshot: MemoryProjection | undefined

  /** Puts a foreign Secret under the name `taken`, for a key that wants it. */
  async begin(): Promise<void> {
    this.world.applied = () => this.#table.applied()
    this.#foreign = await this.world.objects.create(secrets, FOREIGN)
  }

  /** @throws Broken when a rule does not hold then */
  async happens(happening: Happening): Promise<void> {
    await this.#act(happening)
    if (happening.on !== 'settle' && happening.on !== 'kill') await this.#reconcileAll()
    await this.#look()
  }

  /** Everything is well again and has had its time. @throws Broken when a rule of a world at rest does not hold */
  async end(): Promise<void> {
    Object.assign(this.world, { storeDown: false, silentPods: [] })
    this.#held.clear()
    this.#kill = undefined
    await this.world.landLate()
    await this.#rest()
    await this.#look()
    await this.#checkRest()
  }

  stop(): void {
    this.#operator?.stop()
  }

  async #act(happening: Happening): Promise<void> {
    switch (happening.on) {
      case 'apply':
        return this.#apply(happening.name, happening.spec)
      case 'kill':
        this.#kill = happening.kill
        return this.#restart()
      case 'lose shard':
      case 'damage shard':
        return this.#harmShard(happening.shard, happening.on === 'damage shard')
      case 'time passes':
        this.world.now += happening.seconds * 1_000
        return undefined
      default:
        return 'name' in happening ? this.#do(happening.on, happening.name) : this.#befall(happening.on)
    }
  }

  /** As CEL has it: Revoked is final, and the name of the Secret stays. */
  async #apply(name: string, { secret, ...spec }: Partial<ApiKeySpec>): Promise<void> {
    const present = await this.world.objects.get(apiKeys, refOfName(name))
    if (present?.metadata.deletionTimestamp !== undefined) return
    const wanted = present ? present.spec.secret : secret
    const state = present?.spec.state === 'Revoked' ? 'Revoked' : (spec.state ?? 'Active')
    await this.world.apply({ ...spec, state, ...(wanted ? { secret: wanted } : {}) }, name, NAMESPACE)
    this.#names.add(name)
    this.#values.touched(name)
  }

  async #do(deed: Deed, name: string): Promise<void> {
    const key = await this.world.objects.get(apiKeys, refOfName(name))
    if (!key) return
    if (deed === 'delete Secret' || deed === 'edit Secret') return this.#meddle(key, deed)
    this.#values.touched(name)
    if (deed === 'delete') this.#expectProof(key)
    else this.#held.delete(key.metadata.uid ?? '') // who removes the finalizer asks for no proof
    if (deed !== 'delete' && key.metadata.finalizers)
      await this.world.objects.patch(apiKeys, refOfName(name), [{ op: 'remove', path: '/metadata/finalizers' }])
    await this.world.objects.remove(apiKeys, refOfName(name))
  }

  /** An issued key goes only when every gateway refuses it, or the bound of the wait is over. */
  #expectProof({ metadata, status }: ApiKey): void {
    const { storeDown, silentPods, now } = this.world
    const isProvable = !storeDown && silentPods.length === 0
    if (isProvable || !metadata.finalizers || status?.keyID === undefined) return
    this.#held.set(metadata.uid ?? '', { name: metadata.name, untilMs: now + 29_000 })
  }

  async #meddle(key: ApiKey, deed: 'delete Secret' | 'edit Secret'): Promise<void> {
    const { objects } = this.world
    const ref = refOfName(key.spec.secret?.name ?? key.metadata.name)
    const secret = await objects.get(secrets, ref)
    if (!secret?.metadata.ownerReferences?.some(({ uid }) => uid === key.metadata.uid)) return
    if (deed === 'delete Secret') await objects.remove(secrets, ref)
    else await objects.update(secrets, { ...secret, data: { ...secret.data, SERVICE_API_KEY: USERS_OWN } })
  }

  async #befall(accident: Accident): Promise<void> {
    const { world } = this
    switch (accident) {
      case 'restart':
        return this.#restart()
      case 'late calls arrive':
        return world.landLate()
      case 'settle':
        return this.#rest()
      case 'snapshot':
        this.#snapshot = await copyOf(world)
        return undefined
      case 'stale failover':
        return this.#replaceStore(this.#snapshot)
      case 'store wiped':
        return this.#replaceStore(new MemoryProjection({ now: () => world.now }))
      default:
        return this.#outage(accident)
    }
  }

  #outage(accident: 'store down' | 'store up' | 'pod silent' | 'pod well'): void {
    if (accident === 'store down' || accident === 'store up') this.world.storeDown = accident === 'store down'
    else this.world.silentPods = accident === 'pod silent' ? ['gateway-9'] : []
    if (accident === 'store up' || accident === 'pod well') this.#held.clear()
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
    if (damage) await this.world.objects.update(secrets, { ...secret, data: { records: 'AAAA' } })
    else await this.world.objects.remove(secrets, ref)
    this.#loses('shard')
  }

  #loses(what: 'shard' | 'store'): void {
    this.#lost[what] = true
    if (what === 'shard') this.#values.keyringLost()
    if (this.#lost.shard && this.#lost.store) this.#values.endangered()
  }

  async #restart(): Promise<void> {
    this.#operator?.stop()
    this.#operator = undefined
    await this.#alive()
  }

  /** The process that runs; a new one after a kill. undefined: the new one was killed as well. */
  async #alive(): Promise<OperatorProcess | undefined> {
    if (this.#operator && !this.#operator.dead) return this.#operator
    this.#operator?.stop()
    this.#operator = undefined
    const kill = this.#kill
    this.#kill = undefined
    await this.#survive(async () => {
      this.#operator = await this.world.start(kill)
    })
    return this.#operator
  }

  /** As the queue would: each object once, and an error is for another time. */
  async #reconcileAll(): Promise<void> {
    for (const name of this.#names) {
      await this.#survive(async () => (await this.#alive())?.settle(refOfName(name)))
      await this.#look()
    }
  }

  async #rest(): Promise<void> {
    if (this.world.storeDown) return
    for (let round = 0; round < 3; round++) {
      const operator = await this.#healthy()
      this.world.now += REVOCATION_MS
      await this.#reconcileAll()
      const never = (): void => undefined
      await this.#survive(() => sweep(operator.deps, () => true, never))
    }
    Object.assign(this.#lost, { shard: false, store: false })
  }

  /** A process that lives and has written everything that it wants. */
  #healthy(): Promise<OperatorProcess> {
    const ask = async (): Promise<OperatorProcess | undefined> => {
      const operator = await this.#alive()
      return operator?.deps.projection.available === true && operator.deps.projection.epoch !== '' ? operator : undefined
    }
    return waitFor('an operator that reaches the store', ask, { everyMs: 5, deadlineMs: 3_000 })
  }

  /** A kill, and errors that the queue tries again after. */
  async #survive(act: () => Promise<unknown>): Promise<void> {
    try {
      await act()
    } catch (error) {
      const isExpected = error instanceof Killed || (error instanceof Error && /store is down|changed meanwhile/.test(error.message))
      if (!isExpected) throw error
    }
  }

  async #look(): Promise<void> {
    await this.#table.follow()
    await this.#values.look(!this.#lost.shard || !this.#lost.store)
    if (!isDeepStrictEqual(await this.world.secret('taken', NAMESPACE), this.#foreign)) throw new Broken('a foreign Secret was touched')
    for (const [uid, { name, untilMs }] of this.#held) {
      const key = await this.world.objects.get(apiKeys, refOfName(name))
      if (this.world.now < untilMs && key?.metadata.uid !== uid) throw new Broken(`ApiKey ${name} went before its revocation was proven`)
    }
  }

  async #checkRest(): Promise<void> {
    const operator = await this.#healthy()
    const keys = await this.world.objects.list(apiKeys, NAMESPACE)
    const undead = keys.find(({ metadata }) => metadata.deletionTimestamp !== undefined)
    if (undead) throw new Broken(`the deletion of ${undead.metadata.name} does not end`)
    this.#checkProjection(operator, new Map(keys.map((key) => [key.metadata.uid ?? '', key])))
    this.#values.checkServed(keys)
    await this.#checkStill()
    const everything = [
      await this.world.objects.list(apiKeys, ''),
      this.world.events,
      [...operator.deps.keyring.lines()],
      this.#table.records,
    ]
    const text = JSON.stringify(everything)
    for (const value of this.#values.values()) if (text.includes(value)) throw new Broken('a value stands outside of its Secret')
  }

  /** The projection is what keyring and manifests say. */
  #checkProjection(operator: OperatorProcess, keys: ReadonlyMap<string, ApiKey>): void {
    const wanted = new Map<string, unknown>()
    for (const line of operator.deps.keyring.lines()) {
      if (line.deleted === null) wanted.set(line.uid, JSON.parse(recordText(lineOf(checkLine(line, keys), line.ver, 0)) ?? ''))
    }
    const present = new Map(this.#table.records.map((record) => [record.uid, { ...record, rev: 0 }]))
    if (!isDeepStrictEqual(present, wanted)) throw new Broken('the projection is not what keyring and manifests say')
  }

  async #checkStill(): Promise<void> {
    const before = this.world.writes.length
    await this.#reconcileAll()
    const written = this.world.writes.slice(before)
    if (written.length > 0) throw new Broken(`a second pass writes: ${written.join(', ')}`)
  }
}

/** No line without its object, none minted that can be delivered, none made that cannot. @returns the ApiKey of a line */
function checkLine(line: KeyringLine, keys: ReadonlyMap<string, ApiKey>): ApiKey {
  const key = keys.get(line.uid)
  if (!key) throw new Broken(`a line of ${line.name} has no ApiKey`)
  if (currentVerifier(line)?.state === 'Minted') throw new Broken(`a minted key of ${line.name} was left over`)
  const isHomeless = key.spec.secret?.name === FOREIGN.metadata.name
  if (isHomeless && line.ver.length > 0) throw new Broken('a key was made that has nowhere to stand')
  return key
}

async function copyOf(world: OperatorWorld): Promise<MemoryProjection | undefined> {
  const meta = await world.memory.meta()
  if (!meta) return undefined
  const copy = new MemoryProjection({ now: () => world.now })
  const records = await world.records()
  await copy.rebuild(
    meta.fence,
    meta.epoch,
    meta.rev,
    records.map((record) => ({ kind: 'key', op: 'put', id: record.uid, text: JSON.stringify(record) })),
  )
  return copy
}
