/** The values that users have read from their Secrets, and the rules about them that hold at every moment. */
import { credentialForm } from '#contract/values/credential.ts'
import type { ApiKey } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import type { GatewayTable } from './gateway-table.ts'
import type { OperatorWorld } from './operator-world.ts'

export class Broken extends Error {}

interface Issued {
  readonly value: string
  readonly uid: string
  readonly name: string
  /** A value of an older generation can only be a voided one that a running call wrote late, so it never worked. */
  readonly generation: number
  /** The value was seen to work, and no later change should stop the value. */
  works: boolean
  /** The status names the value. Before that, a crash may lose the value, for example if its Secret is edited at that moment. */
  isReported: boolean
  /** Keyring and store were since lost at once: only the Secret can restore the value. */
  atRisk: boolean
  /** The value was seen not to work after its key had been stopped. */
  stopped: 'for ever' | 'until Active' | 'no'
}

export class IssuedValues {
  readonly #world: OperatorWorld
  readonly #table: GatewayTable
  readonly #namespace: string
  readonly #issued = new Map<string, Issued>()
  readonly #perGeneration = new Map<string, string>()
  /** Keys whose entries a newer version has written: they have no promises. */
  readonly #unreadable = new Set<string>()
  #isKeyringLost = false

  constructor(world: OperatorWorld, table: GatewayTable, namespace: string) {
    this.#world = world
    this.#table = table
    this.#namespace = namespace
  }

  values(): Iterable<string> {
    return this.#issued.keys()
  }

  /** Records an edit by a user that may stop a key or resume a suspended key. */
  touched(name: string): void {
    for (const issued of this.#issued.values()) {
      if (issued.name !== name) continue
      issued.works = false
      if (issued.stopped === 'until Active') issued.stopped = 'no'
    }
  }

  unreadable(uid: string): void {
    this.#unreadable.add(uid)
  }

  /** Records the loss of a part of the keyring: generations that were only there, and in no Secret yet, are numbered again. */
  keyringLost(): void {
    this.#isKeyringLost = true
  }

  endangered(): void {
    for (const issued of this.#issued.values()) Object.assign(issued, { works: false, atRisk: true })
  }

  /** Reads the Secrets and tries every value. @param isSafe whether keys can be restored from the keyring or the store @throws Broken */
  async look(isSafe: boolean): Promise<void> {
    for (const secret of await this.#world.objects.list(secrets, this.#namespace)) this.#read(secret)
    for (const issued of this.#issued.values()) if (!this.#unreadable.has(issued.uid)) await this.#try(issued, isSafe)
  }

  /** Asserts that every value of an Active key works once the world is at rest, or that the status reports a value without any copy to restore. */
  checkServed(keys: readonly ApiKey[]): void {
    for (const issued of this.#issued.values()) {
      const key = keys.find(({ metadata }) => metadata.uid === issued.uid)
      const isReplaced = [...this.#issued.values()].some(({ uid, generation }) => uid === issued.uid && generation > issued.generation)
      if (
        !key ||
        this.#unreadable.has(issued.uid) ||
        isReplaced ||
        !issued.isReported ||
        !isToWork(key, this.#world.now) ||
        this.#table.authenticates(issued.value)
      )
        continue
      if (!issued.atRisk || !isReportedLost(key))
        throw new Broken(`an issued key of ${issued.name} does not work although its ApiKey is Active`)
    }
  }

  #read({ metadata, data }: Secret): void {
    const value = Buffer.from(data?.['SERVICE_API_KEY'] ?? '', 'base64').toString()
    const owner = metadata.ownerReferences?.[0]
    if (!owner || credentialForm(value).form !== 'own') return
    const { uid, name } = owner
    const generation = Number(metadata.annotations?.['headgate.dev/generation'])
    if (!this.#isOneOfItsGeneration(`${uid} ${generation}`, value)) throw new Broken(`two values of one generation of ${name}`)
    if (this.#issued.has(value)) return
    this.#issued.set(value, { value, uid, name, generation, works: false, isReported: false, atRisk: false, stopped: 'no' })
  }

  #isOneOfItsGeneration(generation: string, value: string): boolean {
    const other = this.#perGeneration.get(generation) ?? value
    this.#perGeneration.set(generation, value)
    return other === value || this.#isKeyringLost
  }

  async #try(issued: Issued, isSafe: boolean): Promise<void> {
    const found = await this.#world.objects.get(apiKeys, { namespace: this.#namespace, name: issued.name })
    const key = found?.metadata.uid === issued.uid ? found : undefined
    issued.isReported ||= issued.value.includes(key?.status?.keyID ?? ' ') // a value has its id, and no space
    if (this.#table.authenticates(issued.value)) this.#passed(issued, key, isSafe)
    else this.#refused(issued, key)
  }

  #passed(issued: Issued, key: ApiKey | undefined, isSafe: boolean): void {
    if (issued.stopped !== 'no') throw new Broken(`a key of ${issued.name} that was stopped ${issued.stopped} works again`)
    if (isSafe && key && isSettled(key) && isToWork(key, this.#world.now)) issued.works = true
  }

  #refused(issued: Issued, key: ApiKey | undefined): void {
    if (issued.works && key && isToWork(key, this.#world.now)) throw new Broken(`a key of ${issued.name} stopped working`)
    if (!key && this.#world.watches.isFrozen) return // the operator may not know of the deletion yet, and the key may be refused for another reason
    if (!key) issued.stopped = 'for ever'
    else if (isSettled(key)) issued.stopped = stopOf(key)
  }
}

function isToWork({ metadata, spec }: ApiKey, now: number): boolean {
  if (metadata.deletionTimestamp !== undefined || spec.state !== 'Active') return false
  return spec.expirationTime === undefined || Date.parse(spec.expirationTime) > now
}

function isReportedLost(key: ApiKey): boolean {
  return key.status?.conditions?.some(({ reason }) => reason === 'KeyLost' || reason === 'SecretConflict') === true
}

/** Whether the status says that every gateway applies the present manifest. */
function isSettled(key: ApiKey): boolean {
  const programmed = key.status?.conditions?.find(({ type }) => type === 'Programmed')
  return programmed?.status === 'True' && programmed.observedGeneration === key.metadata.generation
}

function stopOf({ spec }: ApiKey): Issued['stopped'] {
  if (spec.state === 'Revoked') return 'for ever'
  return spec.state === 'Suspended' ? 'until Active' : 'no'
}
