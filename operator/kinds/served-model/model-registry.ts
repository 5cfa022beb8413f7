/**
 * Indexes all ServedModels by their shared resources: places in the namespace, names, Services, credentials. The watch updates the index, so
 * that a change finds the other objects to reconcile without a loop over all models.
 */
import type { ServedModel } from '#api/served-model.ts'
import { createdMs, namespaceOf, type ObjectRef, refOf, uidOf } from '#kube/port.ts'
import { AgeList, type Aged } from '#policy/age-list.ts'
import { MultiMap } from '../../shards/multi-map.ts'
import { credentialKey, credentialRef, type CredentialRef } from './backend-credential.ts'
import { type LostName, type NameCandidate, type NameChanges, NameIndex, type NameTakeover } from './name-index.ts'
import { namesOf } from './names.ts'
import { type PublishingRules, publishingOf } from './publishing.ts'

export interface RegistryChanges {
  /** Objects that gained a name or a place, or lost their place. */
  readonly affected: readonly ObjectRef[]
  /** Objects that lost a name, or whose lost name has a new owner: only their status changes. */
  readonly losers: readonly ObjectRef[]
  readonly takeovers: readonly NameTakeover[]
  readonly unusedCredentials: readonly CredentialRef[]
}

interface Registered extends Aged {
  readonly ref: ObjectRef
  readonly model: ServedModel
}

interface Moves {
  readonly moved: Registered | undefined
  readonly names: readonly NameChanges[]
}

/** The bound of ServedModels per namespace: the oldest ones have a place, the others wait. A change affects at most one other object. */
class NamespacePlaces {
  readonly #limit: number
  readonly #byUid = new Map<string, Registered>()
  readonly #byNamespace = new Map<string, AgeList<Registered>>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /** @returns the object that lost its place */
  put(seeker: Registered): Registered | undefined {
    const { namespace } = seeker.ref
    const known = this.#byUid.get(seeker.uid)
    const list = this.#byNamespace.get(namespace) ?? new AgeList<Registered>()
    if (known !== undefined) list.delete(known)
    this.#byUid.set(seeker.uid, seeker)
    this.#byNamespace.set(namespace, list)
    const index = list.add(seeker)
    const hadPlace = known !== undefined // the same uid has the same age, and so the same place
    return hadPlace || index >= this.#limit ? undefined : list.at(this.#limit)
  }

  /** @returns the object that gained the place */
  delete(uid: string): Registered | undefined {
    const known = this.#byUid.get(uid)
    if (known === undefined) return undefined
    this.#byUid.delete(uid)
    const list = this.#byNamespace.get(known.ref.namespace)
    const index = list?.delete(known) ?? -1
    if (list?.length === 0) this.#byNamespace.delete(known.ref.namespace)
    return index < 0 || index >= this.#limit ? undefined : list?.at(this.#limit - 1)
  }

  get(uid: string): Registered | undefined {
    return this.#byUid.get(uid)
  }

  hasPlace(uid: string): boolean {
    const known = this.#byUid.get(uid)
    if (known === undefined) return false
    const index = this.#byNamespace.get(known.ref.namespace)?.indexOf(known) ?? -1
    return index >= 0 && index < this.#limit
  }
}

export class ModelRegistry {
  readonly #rules: PublishingRules
  readonly #places: NamespacePlaces
  readonly #names = new NameIndex()
  readonly #services = new MultiMap<string>()
  readonly #credentials = new MultiMap<string>()
  readonly #selecting = new Map<string, ServedModel>()

  constructor(maxPerNamespace: number, rules: PublishingRules) {
    this.#rules = rules
    this.#places = new NamespacePlaces(maxPerNamespace)
  }

  /** Applies one change of the watch. An object that is being deleted counts as deleted. */
  update(before: ServedModel | undefined, after: ServedModel | undefined): RegistryChanges {
    const present = after?.metadata.deletionTimestamp === undefined ? after : undefined
    const uid = (after ?? before)?.metadata.uid ?? ''
    const former = this.#places.get(uid)?.model
    if (present === undefined && former === undefined) return NOTHING
    const unused = this.#moveUses(uid, former, present)
    return this.#changes(present === undefined ? this.#delete(uid) : this.#put(present), unused)
  }

  /** The ref of the object with this uid; undefined if there is none. */
  refOf(uid: string): ObjectRef | undefined {
    return this.#places.get(uid)?.ref
  }

  hasPlace(uid: string): boolean {
    return this.#places.hasPlace(uid)
  }

  lostNames(uid: string): readonly LostName[] {
    return this.#names.lostNames(uid)
  }

  usersOfService(namespace: string, service: string): readonly ObjectRef[] {
    return this.#refsOf(this.#services.get(`${namespace}/${service}`))
  }

  usersOfCredential(ref: CredentialRef): readonly ObjectRef[] {
    return this.#refsOf(this.#credentials.get(credentialKey(ref)))
  }

  selecting(): Iterable<ServedModel> {
    return this.#selecting.values()
  }

  #put(model: ServedModel): Moves {
    const registered = { uid: uidOf(model), ref: refOf(model), createdMs: createdMs(model), model }
    const moved = this.#places.put(registered)
    const lost = moved && this.#names.delete(moved.uid)
    const hasPlace = this.#places.hasPlace(registered.uid)
    const own = hasPlace ? this.#names.put(this.#candidate(registered)) : this.#names.delete(registered.uid)
    return { moved, names: lost ? [lost, own] : [own] }
  }

  #delete(uid: string): Moves {
    const moved = this.#places.delete(uid)
    const own = this.#names.delete(uid)
    return { moved, names: moved ? [own, this.#names.put(this.#candidate(moved))] : [own] }
  }

  #candidate({ uid, ref, createdMs: created, model }: Registered): NameCandidate {
    return { uid, ref, createdMs: created, names: namesOf(model), isPublished: publishingOf(model, this.#rules) === 'Published' }
  }

  #moveUses(uid: string, before: ServedModel | undefined, after: ServedModel | undefined): readonly CredentialRef[] {
    for (const service of servicesOf(before)) this.#services.delete(service, uid)
    for (const service of servicesOf(after)) this.#services.add(service, uid)
    this.#selecting.delete(uid)
    if (after?.spec.allowedNamespaces.from === 'Selector' && publishingOf(after, this.#rules) === 'Published')
      this.#selecting.set(uid, after)
    for (const credential of credentialsOf(before)) this.#credentials.delete(credentialKey(credential), uid)
    for (const credential of credentialsOf(after)) this.#credentials.add(credentialKey(credential), uid)
    return credentialsOf(before).filter((credential) => !this.#credentials.has(credentialKey(credential)))
  }

  #refsOf(uids: Iterable<string>): readonly ObjectRef[] {
    return Array.from(uids).flatMap((uid) => this.refOf(uid) ?? [])
  }

  #changes({ moved, names }: Moves, unusedCredentials: readonly CredentialRef[]): RegistryChanges {
    const affected = new Set<ObjectRef>(moved ? [moved.ref] : [])
    const losers = new Set<ObjectRef>()
    for (const { gained } of names) for (const { ref } of gained) affected.add(ref)
    for (const { lost } of names) for (const { ref } of lost) if (!affected.has(ref)) losers.add(ref)
    return { affected: [...affected], losers: [...losers], takeovers: names.flatMap((change) => change.takeovers), unusedCredentials }
  }
}

const NOTHING: RegistryChanges = { affected: [], losers: [], takeovers: [], unusedCredentials: [] }

export function credentialsOf(model: ServedModel | undefined): readonly CredentialRef[] {
  if (model === undefined) return []
  const refs = model.spec.backends.flatMap(({ authSecretRef }) => (authSecretRef ? [credentialRef(namespaceOf(model), authSecretRef)] : []))
  return [...new Map(refs.map((ref) => [credentialKey(ref), ref])).values()]
}

function servicesOf(model: ServedModel | undefined): readonly string[] {
  return (model?.spec.backends ?? []).flatMap(({ service }) => (service && model ? [`${namespaceOf(model)}/${service.name}`] : []))
}
