/**
 * Reconciles keyring entries without an ApiKey: the finalizer was removed by force, the namespace is no longer watched, or the cache lags
 * behind. In a watched namespace the operator reads the ApiKey live and ends the entry if it was deleted. Until that read has succeeded the key
 * works: a wrong list of the API server is no reason to refuse a good key. In other namespaces the entry stays as it is, unless the
 * administrator has given the namespace up.
 */
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { ApiKey } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { tombstoneOf } from '#contract/records/tombstone.ts'
import { type ObjectRef, uidOf } from '#kube/port.ts'
import { type Check, firstAnswer, type Reconciled, type StepBase, type Wait } from '../../loop/reconciler.ts'
import type { Level } from '../../loop/level.ts'
import { findByUid } from '../kind.ts'
import type { ApiKeyDeps } from './kind.ts'
import { recordText } from './keyring-entry.ts'

/** Kind of these items in the work queue. A ref has the namespace and the uid of the ApiKey. */
export const ORPHAN_QUEUE = 'KeyringEntry'
/** Time between two live reads of an ApiKey that exists but is not in the cache, ms. */
const CONFIRM_AGAIN_MS = 60_000

/** Maximum number of namespaces that a log line or a metric names. */
const MAX_NAMED = 100

/** What a live read says about the ApiKey of an entry. A deletion that has begun is final, whatever finalizers hold it. */
export type LiveState = 'Deleted' | 'Deleting' | 'Exists'

export interface ObservedOrphan {
  readonly entry: KeyringEntry
  readonly isCommitting: boolean
  readonly scope: Scope
  /** The result of the last live read; undefined if there is none, or if it is too old. */
  readonly confirmed: LiveState | undefined
  readonly isProjected: boolean
  readonly now: number
}

type Step = StepBase & { readonly do: 'read-live' | 'revoke' | 'end' | 'project' }

const CHECKS: ReadonlyArray<Check<ObservedOrphan, Step>> = [
  ({ isCommitting }) => (isCommitting ? { do: 'wait' } : undefined),
  ({ scope }) => (scope === 'Former' ? { do: 'end', level: 'urgent' } : undefined),
  ({ scope }) => (scope === 'Kept' ? { do: 'wait' } : undefined),
  ({ scope }) => (scope === 'NotSynced' ? { do: 'wait', forMs: CONFIRM_AGAIN_MS } : undefined),
  ({ confirmed }) => (confirmed === undefined ? { do: 'read-live', level: 'urgent' } : undefined),
  ({ confirmed }) => (confirmed === 'Deleted' ? { do: 'end', level: 'urgent' } : undefined),
  ({ confirmed, entry }) => (confirmed === 'Deleting' && entry.state !== 'Revoked' ? { do: 'revoke', level: 'urgent' } : undefined),
  ({ isProjected }) => (isProjected ? { do: 'wait', forMs: CONFIRM_AGAIN_MS } : { do: 'project', level: 'change' }),
]

/**
 * Whether the ApiKeys of a namespace are known. Not synced: its Role is missing. Kept: it is no longer watched, perhaps by mistake. In both cases
 * its keys stay as the keyring has them. Former: the administrator gave it up, so its keys end.
 */
export type Scope = 'Watched' | 'NotSynced' | 'Kept' | 'Former'

interface ScopeDeps {
  readonly settings: Pick<ApiKeyDeps['settings'], 'watchNamespaces' | 'formerNamespaces'>
  readonly apiKeys: Pick<ApiKeyDeps['apiKeys'], 'isSynced'>
}

export function scopeOf(namespace: string, { settings, apiKeys: cache }: ScopeDeps): Scope {
  const { watchNamespaces, formerNamespaces } = settings
  if (watchNamespaces.length > 0 && !watchNamespaces.includes(namespace)) return formerNamespaces.includes(namespace) ? 'Former' : 'Kept'
  return cache.isSynced(namespace) ? 'Watched' : 'NotSynced'
}

interface ReportDeps extends ScopeDeps {
  readonly keyring: Pick<ApiKeyDeps['keyring'], 'entries'>
  readonly metrics?: Pick<NonNullable<ApiKeyDeps['metrics']>, 'unwatchedKeys'> | undefined
  readonly log: Pick<ApiKeyDeps['log'], 'warn'>
}

/** Logs the namespaces whose keys are kept, those with most keys first, and how to end their keys. */
export function reportKept({ keyring, settings, apiKeys: cache, metrics, log }: ReportDeps): void {
  const kept = [...keyring.entries()].filter(
    ({ deletedMs, namespace }) => deletedMs === null && scopeOf(namespace, { settings, apiKeys: cache }) === 'Kept',
  )
  const counts = [...Map.groupBy(kept, ({ namespace }) => namespace)].map(([name, keys]) => [name, keys.length] as const)
  const named = counts.toSorted(([, a], [, b]) => b - a).slice(0, MAX_NAMED)
  metrics?.unwatchedKeys(new Map(named))
  if (kept.length === 0) return
  log.warn(
    { namespaces: named.map(([name]) => name), count: counts.length, keys: kept.length },
    'keys of namespaces that are no longer watched continue to work: add the namespaces to scope.watchNamespaces, or to scope.formerNamespaces to revoke their keys',
  )
}

/** The record of an entry whose ApiKey was deleted: revoked, but with its verifiers, so that the refusal gives the reason. */
export function refusedRecord(entry: KeyringEntry, version: number): string | undefined {
  return recordText({ ...entry, state: 'Revoked' }, version)
}

export function createOrphans(deps: ApiKeyDeps): Reconciled<ObservedOrphan, Step> {
  const { keyring, projection } = deps
  const confirmed = new Map<string, { readonly state: LiveState; readonly untilMs: number }>()

  function confirmedNow(uid: string): ObservedOrphan['confirmed'] {
    const answer = confirmed.get(uid)
    return answer && answer.untilMs > deps.clock.monotonic() ? answer.state : undefined
  }

  /** Sends an entry to the keyring and to the gateways at once. */
  function replace(entry: KeyringEntry, level: Level): void {
    keyring.commit(entry, level)
    projection.want('key', entry.uid, recordOf(entry), level)
  }

  const recordOf = (entry: KeyringEntry): string | undefined => recordText(entry, deps.version())

  deps.apiKeys.subscribe((before) => void (before && confirmed.delete(uidOf(before)))) // a read is older than the event

  return {
    name: ORPHAN_QUEUE,
    observe({ name: uid }: ObjectRef) {
      const entry = keyring.pending(uid) ?? keyring.get(uid)
      if (entry === undefined || entry.deletedMs !== null || findByUid(uid, deps.apiKeys)) {
        confirmed.delete(uid)
        return undefined
      }
      const isPresent = projection.present('key', uid, recordOf(entry)) !== undefined
      return {
        entry,
        isCommitting: keyring.state(uid) === 'Pending',
        scope: scopeOf(entry.namespace, deps),
        confirmed: confirmedNow(uid),
        isProjected: isPresent || projection.isPending('key', uid) || !projection.available,
        now: deps.clock.now(),
      }
    },
    nextStep: (observed): Step | Wait | undefined => firstAnswer(CHECKS, observed),
    async apply(step, { entry, now }) {
      if (step.do === 'read-live') {
        const live = await deps.kube.get(apiKeys, { namespace: entry.namespace, name: entry.name })
        confirmed.set(entry.uid, { state: liveState(entry, live), untilMs: deps.clock.monotonic() + CONFIRM_AGAIN_MS })
        return
      }
      if (step.do === 'project') return projection.want('key', entry.uid, recordOf(entry), step.level)
      if (step.do === 'revoke') return replace({ ...entry, state: 'Revoked', revision: projection.revision }, step.level)
      const tombstone = tombstoneOf(entry, deps.subjects.timeMs() ?? now)
      replace(tombstone, step.level)
      deps.kept.forget(entry.uid) // otherwise a record of the key would be kept again when the tombstone is dropped
      deps.subjects.ledger?.deleted(entry.uid)
      deps.metrics?.orphaned(1)
      deps.log.warn(
        { object: `${entry.namespace}/${entry.name}` },
        'a key without an ApiKey was revoked: its finalizer was removed by force, or scope.formerNamespaces names its namespace',
      )
    },
  }
}

/** @param apiKey the answer of a live read by namespace and name */
export function liveState({ uid }: Pick<KeyringEntry, 'uid'>, apiKey: ApiKey | undefined): LiveState {
  if (apiKey?.metadata.uid !== uid) return 'Deleted'
  return apiKey.metadata.deletionTimestamp === undefined ? 'Exists' : 'Deleting'
}
