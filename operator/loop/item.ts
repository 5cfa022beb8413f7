import { refKey, type ObjectRef } from '#kube/port.ts'

/** No namespace has a slash. */
const CREDITS = 'credits/'

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

export function isCreditsTenant(tenant: string): boolean {
  return tenant.startsWith(CREDITS)
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
