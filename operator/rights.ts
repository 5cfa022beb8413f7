/**
 * Every right of the operator at the API server, with its reason. The chart's rules are generated from this table (`rights-template.ts`),
 * and a test compares the table with the API server's audit log, both ways: an unused right fails, and so does a use without a right.
 * Pure data.
 */
import type { ApiKind } from '#api/kind.ts'
import { LEASE_NAME } from '#kube/leader.ts'
import type { Resource } from '#kube/port.ts'

/** A verb of RBAC; `patch` is server-side apply too. */
export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'

/**
 * Where a right holds: `own` = the operator's namespace; `watched` = each namespace whose resources it serves, or all of them;
 * `former` = each namespace that was taken out of the list; `cluster` = objects that have no namespace.
 */
export type Where = 'own' | 'watched' | 'former' | 'cluster'

/** The facts about a kind from which its rights follow. A kind without a finalizer owns no other objects. */
export interface KindRights extends Pick<ApiKind, 'finalizer'> {
  readonly resource: Pick<Resource, 'plural' | 'namespaced'>
}

/** One row: the same verbs on one resource. */
export interface Right {
  readonly where: Where
  /** '' for the core group. */
  readonly group: string
  /** With its subresource, as in RBAC: `apikeys/status`. */
  readonly resource: string
  readonly verbs: readonly Verb[]
  /** Names of the only objects that the right covers; absent for all objects. */
  readonly names?: readonly string[]
  readonly why: string
  /** Needed only where the operator watches a list of namespaces: elsewhere a cluster-wide row covers it. */
  readonly onlyWithList?: boolean
  /** Why no request with this right is in the audit log of the integration tests, and what proves it instead. */
  readonly provenBy?: string
}

/** Names of the operator's own Secrets, as the admission policy allows them (RE2, the whole name). */
export const OWN_SECRETS = '^hg-(installation|(keyring|models|upstream|spend)-[0-9]+-[0-9]+(-damaged-[0-9a-f]+)?)$'
/** API group of our kinds. */
const OURS = 'headgate.dev'
const DISCOVERY = 'discovery.k8s.io'
const COORDINATION = 'coordination.k8s.io'

/** @returns the whole table, in the order of the chart's rules */
export function operatorRights(kinds: readonly KindRights[]): readonly Right[] {
  return [...kinds.flatMap(rightsOnKind), ...WATCHED, ...formerRights(kinds), ...CLUSTER, ...OWN]
}

function rightsOnKind({ resource: { plural, namespaced }, finalizer }: KindRights): readonly Right[] {
  const row = { where: namespaced ? 'watched' : 'cluster', group: OURS } as const
  const always: readonly Right[] = [
    { ...row, resource: plural, verbs: ['list', 'watch'], why: 'what users declare' },
    { ...row, resource: `${plural}/status`, verbs: ['patch'], why: 'what users read back' },
  ]
  if (finalizer === undefined) return always
  const final = 'the finalizer, and a live read before something final'
  return [
    ...always,
    { ...row, resource: plural, verbs: ['get', 'patch'], why: final },
    {
      ...row,
      resource: `${plural}/finalizers`,
      verbs: ['update'],
      why: 'user Secrets block the deletion of their owner',
      provenBy: ADMISSION,
    },
  ]
}

const ADMISSION =
  'asked while a Secret with this owner is admitted (OwnerReferencesPermissionEnforcement): no request of its own, so no entry in the log'

/** RBAC cannot filter Secrets by label, so the operator may neither list nor watch them where users have theirs. */
const WATCHED: readonly Right[] = [
  { where: 'watched', group: '', resource: 'secrets', verbs: ['get', 'create', 'patch', 'delete'], why: 'user Secrets; upstream tokens' },
  { where: 'watched', group: '', resource: 'services', verbs: ['list', 'watch'], why: 'ports of backends' },
  { where: 'watched', group: DISCOVERY, resource: 'endpointslices', verbs: ['list', 'watch'], why: 'addresses of backends' },
  { where: 'watched', group: 'events.k8s.io', resource: 'events', verbs: ['create', 'patch'], why: 'what users are informed of' },
]

/** In namespaces that are no longer served, the operator revokes the remaining keys. */
function formerRights(kinds: readonly KindRights[]): readonly Right[] {
  const finalizers = kinds.filter(({ resource, finalizer }) => finalizer !== undefined && resource.namespaced)
  if (finalizers.length === 0) return []
  return [
    ...finalizers.map(({ resource: { plural } }): Right => {
      return { where: 'former', group: OURS, resource: plural, verbs: ['get', 'list', 'patch'], why: 'the finalizers that it left there' }
    }),
    { where: 'former', group: 'events.k8s.io', resource: 'events', verbs: ['create'], why: 'that the object was released' },
  ]
}

const CLUSTER: readonly Right[] = [
  { where: 'cluster', group: '', resource: 'namespaces', verbs: ['list', 'watch'], why: 'allowedNamespaces that select by label' },
]

const OWN: readonly Right[] = [
  {
    where: 'own',
    group: '',
    resource: 'secrets',
    verbs: ['get', 'list', 'create', 'update', 'delete'],
    why: 'keyring, model records, upstream tokens, spend of budgets, id of the installation',
  },
  { where: 'own', group: COORDINATION, resource: 'leases', verbs: ['create'], why: 'the election; create cannot be bound to a name' },
  {
    where: 'own',
    group: COORDINATION,
    resource: 'leases',
    names: [LEASE_NAME],
    verbs: ['get', 'update', 'delete'],
    why: 'the election, and its end',
  },
  {
    where: 'own',
    group: DISCOVERY,
    resource: 'endpointslices',
    verbs: ['list', 'watch'],
    onlyWithList: true,
    why: 'the gateway pods that must acknowledge',
  },
]
