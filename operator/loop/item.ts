import { refKey, type ObjectRef } from '#kube/port.ts'

/** No namespace has a slash. */
const CREDITS = 'credits/'
const MODELS = 'models/'

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

/**
 * Maximum number of statuses of one tenant that are written at once. A Credit or ServedModel takes effect before its status says so, and each
 * status takes the API server longer than a new object: more at once delay the Secrets, and so the keys, of all other tenants.
 */
export function mostStatuses(tenant: string): number {
  return tenant.startsWith(CREDITS) || tenant.startsWith(MODELS) ? 2 : Infinity
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
