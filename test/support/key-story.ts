/**
 * What users do to ApiKeys and what befalls the operator, for property tests over OperatorWorld; and what must hold at every moment of it.
 * It knows the issued values as their users do: by reading Secrets.
 */
import { isDeepStrictEqual } from 'node:util'
import { credentialForm, hashCredential } from '../../gateway/shared/credential.ts'
import type { KeyRecord } from '../../gateway/shared/key-record.ts'
import type { ProjectionMeta } from '../../gateway/shared/revision-log.ts'
import type { ApiKey, ApiKeySpec } from '../../operator/api/apikey.ts'
import { currentVerifier, lineOf, recordText } from '../../operator/apikey/policy.ts'
import { sweep } from '../../operator/apikey/sweep.ts'
import { apiKeys, type Secret, secrets } from '../../operator/kube/resources.ts'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { Killed, type KillAt, type OperatorProcess, OperatorWorld } from './operator-world.ts'
import { waitFor } from './wait-for.ts'

/** One thing that happens. Names are those of ApiKeys in `shop`. */
export type Happening =
  | { readonly on: 'apply'; readonly name: string; readonly spec: Partial<ApiKeySpec> }
  | { readonly on: 'delete' | 'delete Secret' | 'edit Secret' | 'remove finalizer'; readonly name: string }
  | { readonly on: 'restart' | 'store down' | 'store up' | 'store wiped' | 'snapshot' | 'stale failover' | 'late calls arrive' | 'settle' }
  | { readonly on: 'kill'; readonly kill: KillAt }
  | { readonly on: 'lose shard' | 'damage shard'; readonly shard: number }
  | { readonly on: 'time passes'; readonly seconds: number }

/** A value that stood in a Secret of ours, and whose it is. */
interface Issued {
  readonly value: string
  readonly uid: string
  readonly name: string
  /** An older one can only be a voided value that a call under way wrote late: it never worked. */
  readonly generation: number
  /** It was seen to work, and nobody has done anything since that should stop it. */
  works: boolean
  /** The status has told of it. */
  told: boolean
  /** Keyring and store were lost before the status told of it: nothing is left to restore it from. */
  lost: boolean
  /** It was seen not to work after its key had been stopped: it must never work again, or (Suspended) not before its key is Active. */
  stopped: 'for ever' | 'until Active' | 'no'
}

/** A rule was broken. */
export class Broken extends Error {}

const NAMESPACE = 'shop'
const USERS_OWN = 'put there by a user'
const TAKEN: Secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'taken', namespace: NAMESPACE, labels: { app: 'foreign' } },
  data: { SERVICE_API_KEY: Buffer.from('foreign').toString('base64') },
}

/** One run. */
export class KeyStory {
  readonly world = new OperatorWorld()
  readonly #issued = new Map<string, Issued>()
  readonly #perGeneration = new Map<string, string>()
  readonly #names = new Set<string>()
  #operator: OperatorProcess | undefined
  #kill: KillAt | undefined
  #foreign: Secret | undefined
  #snapshot: MemoryProjection | undefined
  /** What gateways hold: they keep it while the store is empty or behind. */
  #table: readonly KeyRecord[] = []
  #tableMeta: ProjectionMeta | undefined
  #lostShard = false
  #lostStore = false

  /** Puts a foreign Secret under the name `taken`, for a key that wants it. */
  async begin(): Promise<void> {
    this.#foreign = await this.world.objects.create(secrets, TAKEN)
  }

  async happens(happening: Happening): Promise<void> {
    await this.#act(happening)
    if (happening.on !== 'settle' && happening.on !== 'kill') await this.#reconcileAll()
    await this.#look()
  }

  /** Everything is well again and has had its time; then the rules of a world at rest are checked. */
  async end(): Promise<void> {
    this.world.storeDown = false
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
      case 'delete':
      case 'delete Secret':
      case 'edit Secret':
      case 'remove finalizer':
        return this.#touch(happening.on, happening.name)
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
        return this.#befall(happening.on)
    }
  }

  async #apply(name: string, spec: Partial<ApiKeySpec>): Promise<void> {
    const ref = { namespace: NAMESPACE, name }
    const present = await this.world.objects.get(apiKeys, ref)
    if (present?.metadata.deletionTimestamp !== undefined) return
    // as CEL has it: Revoked is final, the name of the Secret stays
    const state = present?.spec.state === 'Revoked' ? 'Revoked' : (spec.state ?? 'Active')
    const { secret: wanted, ...rest } = spec
    const secret = present ? present.spec.secret : wanted
    await this.world.apply({ ...rest, state, ...(secret ? { secret } : {}) }, name, NAMESPACE)
    this.#names.add(name)
    this.#stopsWorking(name, () => true)
  }

  /** A change that may stop a key from working, or bring a suspended one back. */
  #stopsWorking(name: string, isMeant: (issued: Issued) => boolean): void {
    for (const issued of this.#issued.values()) {
      if (issued.name !== name || !isMeant(issued)) continue
      issued.works = false
      if (issued.stopped === 'until Active') issued.stopped = 'no'
    }
  }

  async #touch(what: 'delete' | 'delete Secret' | 'edit Secret' | 'remove finalizer', name: string): Promise<void> {
    const { objects } = this.world
    const ref = { namespace: NAMESPACE, name }
    const key = await objects.get(apiKeys, ref)
    if (!key) return
    const secretRef = { namespace: NAMESPACE, name: key.spec.secret?.name ?? name }
    const secret = await objects.get(secrets, secretRef)
    const isOurs = secret?.metadata.ownerReferences?.some(({ uid }) => uid === key.metadata.uid) === true
    if (what === 'delete') {
      this.#stopsWorking(name, () => true)
      await objects.remove(apiKeys, ref)
    } else if (what === 'delete Secret') {
      if (isOurs) await objects.remove(secrets, secretRef)
    } else if (what === 'edit Secret') {
      if (secret && isOurs)
        await objects.update(secrets, { ...secret, data: { ...secret.data, SERVICE_API_KEY: Buffer.from(USERS_OWN).toString('base64') } })
    } else if (key.metadata.deletionTimestamp !== undefined && (key.metadata.finalizers ?? []).length > 0) {
      await objects.patch(apiKeys, ref, [{ op: 'remove', path: '/metadata/finalizers' }])
    }
  }

  async #befall(what: Exclude<Happening['on'], 'apply' | 'kill' | 'time passes'>): Promise<void> {
    const { world } = this
    if (what === 'restart') return this.#restart()
    if (what === 'late calls arrive') return world.landLate()
    if (what === 'settle') return this.#rest()
    if (what === 'store down') world.storeDown = true
    if (what === 'store up') world.storeDown = false
    if (what === 'store wiped') this.#replaceStore(new MemoryProjection({ now: () => world.now }))
    if (what === 'snapshot') this.#snapshot = await copyOf(world)
    if (what === 'stale failover' && this.#snapshot) this.#replaceStore(this.#snapshot)
  }

  #replaceStore(memory: MemoryProjection): void {
    this.world.memory = memory
    this.#snapshot = undefined
    this.#lostStore = true
    this.#doubleLoss()
  }

  async #harmShard(shard: number, damage: boolean): Promise<void> {
    const ref = { namespace: 'headgate', name: `hg-keyring-2-${shard}` }
    const secret = await this.world.objects.get(secrets, ref)
    if (!secret) return
    this.#lostShard = true
    this.#doubleLoss()
    if (damage) await this.world.objects.update(secrets, { ...secret, data: { records: 'AAAA' } })
    else await this.world.objects.remove(secrets, ref)
  }

  /** A shard and the store lost at the same time: keys work again only once they were restored from their Secrets. */
  #doubleLoss(): void {
    if (!this.#lostShard || !this.#lostStore) return
    for (const issued of this.#issued.values()) {
      issued.works = false
      issued.lost ||= !issued.told
    }
  }

  async #restart(): Promise<void> {
    this.#operator?.stop()
    this.#operator = undefined
    await this.#alive()
  }

  async #alive(): Promise<OperatorProcess | undefined> {
    if (this.#operator && !this.#operator.dead) return this.#operator
    this.#operator?.stop()
    this.#operator = undefined
    const kill = this.#kill
    this.#kill = undefined
    try {
      this.#operator = await this.world.start(kill)
    } catch (error) {
      if (!(error instanceof Killed)) throw error
    }
    return this.#operator
  }

  /** As the queue would: each object once, a killed process is followed by the next one. */
  async #reconcileAll(): Promise<void> {
    for (const name of this.#names) {
      const operator = await this.#alive()
      try {
        await operator?.settle({ namespace: NAMESPACE, name })
      } catch (error) {
        if (error instanceof Killed) this.#operator = undefined
        else if (!(error instanceof Error && /store is down|Conflict|changed meanwhile/.test(error.message))) throw error
      }
      await this.#look()
    }
  }

  async #rest(): Promise<void> {
    if (this.world.storeDown) return
    for (let round = 0; round < 3; round++) {
      const operator = await this.#healthy()
      this.world.now += 31_000 // deletions are waited for no longer than that
      await this.#reconcileAll()
      if (this.#operator)
        await this.#quietly(() =>
          sweep(
            operator.deps,
            () => true,
            () => undefined,
          ),
        )
    }
    this.#lostShard = false
    this.#lostStore = false
  }

  /** A process that lives and has written everything that it wants. */
  async #healthy(): Promise<OperatorProcess> {
    return waitFor(
      'an operator that reaches the store',
      async () => {
        const operator = await this.#alive()
        return operator?.deps.projection.available === true && operator.deps.projection.epoch !== '' ? operator : undefined
      },
      { everyMs: 5, deadlineMs: 3_000 },
    )
  }

  async #quietly(act: () => Promise<unknown>): Promise<void> {
    try {
      await act()
    } catch (error) {
      if (!(error instanceof Killed)) throw error
      this.#operator = undefined
    }
  }

  /** Reads what users and gateways can read now, and checks what must hold at every moment. */
  async #look(): Promise<void> {
    await this.#followStore()
    await this.#readSecrets()
    for (const issued of this.#issued.values()) await this.#checkValue(issued)
    const foreign = await this.world.secret('taken', NAMESPACE)
    if (!isDeepStrictEqual(foreign, this.#foreign)) throw new Broken('a foreign Secret was touched')
  }

  /** A gateway takes no data set that is older than what it has applied, and keeps its table while there is none. */
  async #followStore(): Promise<void> {
    const meta = await this.world.memory.meta()
    if (!meta) return
    const isOlder = this.#tableMeta?.epoch === meta.epoch && meta.rev < this.#tableMeta.rev
    if (isOlder) return
    this.#table = await this.world.records()
    this.#tableMeta = meta
  }

  async #readSecrets(): Promise<void> {
    for (const secret of await this.world.objects.list(secrets, NAMESPACE)) {
      const value = Buffer.from(secret.data?.['SERVICE_API_KEY'] ?? '', 'base64').toString()
      const [owner] = secret.metadata.ownerReferences ?? []
      if (!owner || credentialForm(value).form !== 'own') continue
      const generation = Number(secret.metadata.annotations?.['headgate.dev/generation'])
      const other = this.#perGeneration.get(`${owner.uid} ${generation}`)
      if (other !== undefined && other !== value) throw new Broken(`two values of one generation of ${owner.name}`)
      this.#perGeneration.set(`${owner.uid} ${generation}`, value)
      if (!this.#issued.has(value))
        this.#issued.set(value, {
          value,
          uid: owner.uid,
          name: owner.name,
          generation,
          works: false,
          told: false,
          lost: false,
          stopped: 'no',
        })
    }
  }

  async #checkValue(issued: Issued): Promise<void> {
    const passes = this.#authenticates(issued.value)
    const key = await this.world.objects.get(apiKeys, { namespace: NAMESPACE, name: issued.name })
    const own = key?.metadata.uid === issued.uid ? key : undefined
    if (passes && issued.stopped !== 'no') throw new Broken(`a key of ${issued.name} that was stopped ${issued.stopped} works again`)
    if (!passes && issued.works && isToWork(own, this.world.now)) throw new Broken(`a key of ${issued.name} stopped working`)
    issued.told ||= own?.status?.keyID !== undefined
    const isSafe = !this.#lostShard || !this.#lostStore
    if (passes && isSafe && issued.told && isToWork(own, this.world.now)) issued.works = true
    if (!passes && !own) issued.stopped = 'for ever'
    if (!passes && own && isSettled(own)) issued.stopped = stopOf(own)
  }

  #authenticates(value: string): boolean {
    const hash = hashCredential(value)
    const { now } = this.world
    return this.#table.some(({ st, exp, ver }) => st === 'Active' && (exp === null || exp > now) && ver.some(({ h }) => h === hash))
  }

  async #checkRest(): Promise<void> {
    const operator = this.#operator
    if (!operator) throw new Broken('no operator runs')
    const keys = await this.world.objects.list(apiKeys, NAMESPACE)
    const undead = keys.find(({ metadata }) => metadata.deletionTimestamp !== undefined)
    if (undead) throw new Broken(`the deletion of ${undead.metadata.name} does not end`)
    this.#checkProjection(operator, keys)
    for (const issued of this.#issued.values()) this.#checkServed(issued, keys)
    await this.#checkStill()
    await this.#checkNowhereElse(operator)
  }

  /** The projection is what keyring and manifests say; no line without its object, none minted that cannot be delivered. */
  #checkProjection(operator: OperatorProcess, keys: readonly ApiKey[]): void {
    const byUid = new Map(keys.map((key) => [key.metadata.uid ?? '', key]))
    const wanted = new Map<string, string>()
    for (const line of operator.deps.keyring.lines()) {
      if (line.deleted !== null) continue
      const key = byUid.get(line.uid)
      if (!key) throw new Broken(`a line of ${line.name} has no ApiKey`)
      const conflict = key.status?.conditions?.some(({ reason }) => reason === 'SecretConflict') === true
      if (currentVerifier(line)?.state === 'Minted' && !conflict) throw new Broken(`a minted key of ${line.name} was left over`)
      wanted.set(line.uid, recordText(lineOf(key, line.ver, 0)) ?? '')
    }
    const present = new Map(this.#table.map((record) => [record.uid, JSON.stringify({ ...record, rev: 0 })]))
    const expected = new Map([...wanted].map(([uid, text]) => [uid, JSON.stringify({ ...JSON.parse(text), rev: 0 })]))
    if (!isDeepStrictEqual(present, expected)) throw new Broken('the projection is not what keyring and manifests say')
  }

  #checkServed(issued: Issued, keys: readonly ApiKey[]): void {
    const key = keys.find(({ metadata }) => metadata.uid === issued.uid)
    if (!issued.told) return // a crash lost it before anybody was told, as when its Secret was edited in that moment
    const isReplaced = [...this.#issued.values()].some(({ uid, generation }) => uid === issued.uid && generation > issued.generation)
    if (isReplaced || !isToWork(key, this.world.now) || this.#authenticates(issued.value)) return
    const isLost = key?.status?.conditions?.some(({ reason }) => reason === 'KeyLost') === true
    if (!isLost && !issued.lost) throw new Broken(`an issued key of ${issued.name} does not work although its ApiKey is Active`)
  }

  async #checkStill(): Promise<void> {
    const before = this.world.writes.length
    await this.#reconcileAll()
    const written = this.world.writes.slice(before)
    if (written.length > 0) throw new Broken(`a second pass writes: ${written.join(', ')}`)
  }

  async #checkNowhereElse(operator: OperatorProcess): Promise<void> {
    const keyring = [...operator.deps.keyring.lines()]
    const text = JSON.stringify([await this.world.objects.list(apiKeys, ''), this.world.events, keyring, this.#table])
    const leaked = [...this.#issued.keys()].find((value) => text.includes(value))
    if (leaked) throw new Broken('a value stands outside of its Secret')
  }
}

async function copyOf(world: OperatorWorld): Promise<MemoryProjection | undefined> {
  const meta = await world.memory.meta()
  if (!meta) return undefined
  const copy = new MemoryProjection({ now: () => world.now })
  const records = (await world.records()).map(
    (record) => ({ kind: 'key', op: 'put', id: record.uid, text: JSON.stringify(record) }) as const,
  )
  await copy.rebuild(meta.fence, meta.epoch, meta.rev, records)
  return copy
}

function isToWork(key: ApiKey | undefined, now: number): boolean {
  if (!key || key.metadata.deletionTimestamp !== undefined || key.spec.state !== 'Active') return false
  return key.spec.expirationTime === undefined || Date.parse(key.spec.expirationTime) > now
}

/** The status says that every gateway has what the manifest says now. */
function isSettled(key: ApiKey): boolean {
  const programmed = key.status?.conditions?.find(({ type }) => type === 'Programmed')
  return programmed?.status === 'True' && programmed.observedGeneration === key.metadata.generation
}

function stopOf(key: ApiKey): Issued['stopped'] {
  if (key.spec.state === 'Revoked') return 'for ever'
  return key.spec.state === 'Suspended' ? 'until Active' : 'no'
}
