import { refKey, type ObjectRef } from '#kube/port.ts'

/** No namespace has a slash. */
const CREDITS = 'credits/'
const MODELS = 'models/'
const SLOW_MODELS = 'slow models'

export interface Item {
  readonly kind: string
  readonly ref: ObjectRef
}

/** Share of an account, beside the shares of namespaces: the turns of its items, and the bytes of its keys. @param uid of the Account */
export function accountTenant(uid: string): string {
  return `account/${uid}`
}

/** Share of the Credits of an account in the turns of the queue. @param uid of the Account; '' without one */
export function creditsTenant(uid: string): string {
  return `${CREDITS}${uid}`
}

/** Share of the ServedModels of a namespace in the turns of the queue, so that thousands of models do not delay the statuses of the namespace's keys. */
export function modelsTenant(namespace: string): string {
  return `${MODELS}${namespace}`
}

/** A bound of runs at level background. */
export interface Bound {
  /** Tenants with a bound of the same name share its places, in turns. */
  readonly name: string
  /** Number of places. A place rests after each run for as long as the run took, so a slow API server is asked for less. */
  readonly most: number
  /** Number of places up to which a run that turns out to be slow moves here; default: none moves. */
  readonly mostMoved?: number
}

/**
 * For the models of one namespace, and of all. Namespaces behind slow webhooks have a place of their own, which they share, and leave the others
 * alone.
 */
const MOST_MODELS = { ofOne: 1, ofAll: 3, ofSlow: 1, movedToSlow: 3 }

/**
 * Bounds of the statuses of a tenant. A Credit or ServedModel takes effect before its status says so, and each status takes the API server more
 * than twice as long as a new object: more at once delay the Secrets, and so the keys, of all other tenants.
 * @param isSlow whether the last run of the tenant took long, or the present one does
 */
export function statusBounds(tenant: string, isSlow: boolean): readonly Bound[] {
  if (tenant.startsWith(CREDITS)) return [{ name: tenant, most: 2 }]
  if (!tenant.startsWith(MODELS)) return []
  return [
    { name: tenant, most: MOST_MODELS.ofOne },
    isSlow
      ? { name: SLOW_MODELS, most: MOST_MODELS.ofSlow, mostMoved: MOST_MODELS.movedToSlow }
      : { name: MODELS, most: MOST_MODELS.ofAll },
  ]
}

/** `<kind> <namespace>/<name>`: identity of an item in queues. */
export function itemKey({ kind, ref }: Item): string {
  return `${kind} ${refKey(ref)}`
}

/** The reverse of `itemKey`. Kinds and namespaces contain neither a blank nor a slash. */
export function itemOf(key: string): Item {
  const blank = key.indexOf(' ')
  const slash = key.indexOf('/', blank)
  return { kind: key.slice(0, blank), ref: { namespace: key.slice(blank + 1, slash), name: key.slice(slash + 1) } }
}
