/**
 * Decides which ServedModel owns a model name. Within a namespace the oldest model owns the name. Beyond it, the oldest published model of
 * all namespaces owns the name. (A key looks in its own namespace first, so a published model takes no name within another namespace.)
 */
import { isDeepStrictEqual } from 'node:util'
import { type ObjectRef, refKey } from '#kube/port.ts'
import { AgeList, type Aged } from '#policy/age-list.ts'

export interface NameCandidate extends Aged {
  readonly ref: ObjectRef
  readonly names: readonly string[]
  /** Keys of other namespaces may use the model. */
  readonly isPublished: boolean
}

export interface LostName {
  readonly name: string
  /** `namespace/name` of the owner. */
  readonly winner: string
}

/** A published name whose owner is now in another namespace. */
export interface NameTakeover {
  readonly name: string
  readonly from: NameCandidate
  readonly to: NameCandidate
}

export interface NameChanges {
  /** Candidates that own a name that they did not own before. */
  readonly gained: ReadonlySet<NameCandidate>
  /** Candidates that lost a name, or whose lost name has another owner now. */
  readonly lost: ReadonlySet<NameCandidate>
  readonly takeovers: readonly NameTakeover[]
}

interface Scope {
  readonly name: string
  /** undefined: the published models of all namespaces. */
  readonly namespace: string | undefined
}

interface FormerOwner {
  readonly scope: Scope
  readonly former: NameCandidate | undefined
}

/** Indexes all candidates by name. A change reads the lists of its own names, never all models. */
export class NameIndex {
  readonly #candidates = new Map<string, NameCandidate>()
  readonly #lists = new Map<string, AgeList<NameCandidate>>()

  put(candidate: NameCandidate): NameChanges {
    const before = this.#candidates.get(candidate.uid)
    if (isDeepStrictEqual(before, candidate)) return NOTHING
    return this.#replace(before, candidate)
  }

  delete(uid: string): NameChanges {
    const before = this.#candidates.get(uid)
    return before === undefined ? NOTHING : this.#replace(before, undefined)
  }

  lostNames(uid: string): readonly LostName[] {
    const candidate = this.#candidates.get(uid)
    if (candidate === undefined) return []
    const lost = new Map<string, LostName>()
    for (const scope of scopesOf(candidate)) {
      const owner = this.#owner(scope)
      if (owner !== undefined && owner.uid !== uid && !lost.has(scope.name))
        lost.set(scope.name, { name: scope.name, winner: refKey(owner.ref) })
    }
    return [...lost.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  #replace(before: NameCandidate | undefined, after: NameCandidate | undefined): NameChanges {
    const scopes = new Map([...scopesOf(before), ...scopesOf(after)].map((scope) => [keyOf(scope), scope]))
    const owners = [...scopes.values()].map((scope) => ({ scope, former: this.#owner(scope) }))
    for (const scope of scopesOf(before)) this.#remove(scope, before)
    for (const scope of scopesOf(after)) this.#add(scope, after)
    const uid = (after ?? before)?.uid ?? ''
    if (after === undefined) this.#candidates.delete(uid)
    else this.#candidates.set(uid, after)
    return this.#compare(owners, uid)
  }

  /** @param changed uid of the changed candidate, which the result leaves out: the caller reconciles it anyway */
  #compare(owners: readonly FormerOwner[], changed: string): NameChanges {
    const moved = owners.filter(({ scope, former }) => this.#owner(scope) !== undefined && this.#owner(scope)?.uid !== former?.uid)
    const gained = new Set(moved.flatMap(({ scope }) => this.#owner(scope) ?? []))
    const lost = new Set<NameCandidate>()
    for (const { scope } of moved) for (const candidate of this.#lists.get(keyOf(scope)) ?? []) lost.add(candidate)
    for (const candidate of gained) lost.delete(candidate)
    const own = this.#candidates.get(changed)
    if (own !== undefined) for (const set of [gained, lost]) set.delete(own)
    return { gained, lost, takeovers: moved.flatMap((owner) => this.#takeoverOf(owner) ?? []) }
  }

  #takeoverOf({ scope, former }: FormerOwner): NameTakeover | undefined {
    const owner = this.#owner(scope)
    if (scope.namespace !== undefined || former === undefined || owner === undefined) return undefined
    return former.ref.namespace === owner.ref.namespace ? undefined : { name: scope.name, from: former, to: owner }
  }

  #owner(scope: Scope): NameCandidate | undefined {
    return this.#lists.get(keyOf(scope))?.first
  }

  #add(scope: Scope, candidate: NameCandidate | undefined): void {
    if (candidate === undefined) return
    const list = this.#lists.get(keyOf(scope)) ?? new AgeList<NameCandidate>()
    list.add(candidate)
    this.#lists.set(keyOf(scope), list)
  }

  #remove(scope: Scope, candidate: NameCandidate | undefined): void {
    const list = this.#lists.get(keyOf(scope))
    if (candidate !== undefined) list?.delete(candidate)
    if (list?.length === 0) this.#lists.delete(keyOf(scope))
  }
}

const NOTHING: NameChanges = { gained: new Set(), lost: new Set(), takeovers: [] }

function* scopesOf(candidate: NameCandidate | undefined): Iterable<Scope> {
  for (const name of candidate?.names ?? []) {
    yield { name, namespace: candidate?.ref.namespace }
    if (candidate?.isPublished === true) yield { name, namespace: undefined }
  }
}

/** No namespace contains a blank. */
function keyOf({ name, namespace }: Scope): string {
  return `${namespace ?? ' '} ${name}`
}
