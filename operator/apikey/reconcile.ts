/** Reconcile of one ApiKey: observe, do the next step, observe again, until nothing is left; then say how it stands. */
import { sameStatus } from '../api/same-status.ts'
import { identityOf, type ObjectRef, uidOf } from '../kube/port.ts'
import { apiKeys } from '../kube/resources.ts'
import { apply, type Change } from './apply.ts'
import { decide, FINALIZER, isAcknowledged, type Step, wasProgrammed } from './decide.ts'
import type { ApiKeyDeps } from './deps.ts'
import { describe, eventsOf } from './describe.ts'
import { gather } from './gather.ts'
import type { Observed } from './observed.ts'
import { currentVerifier } from './policy.ts'

/** More steps than any path has: a mistake in `decide` shows as an error, not as a spin. */
const MAX_STEPS = 16
/** A deletion that waits for acknowledgements is looked at again this soon, ms. */
const DELETION_RETRY_MS = 250
/** What waits for the store or for gateways is looked at again this soon even if nobody wakes it, ms. */
const WAITING_RETRY_MS = 5_000

/** When to look again (ms from now), and whether the gateways still owe an acknowledgement. */
export interface ReconcileResult {
  readonly requeueAfterMs?: number
  readonly pending?: { readonly rev: number; readonly uid: string; readonly ready: number; readonly total: number }
}

/** @throws KubeError or a store error: the queue tries again with back-off */
export async function reconcile(ref: ObjectRef, deps: ApiKeyDeps): Promise<ReconcileResult> {
  const cached = deps.apiKeys.get(ref)
  if (!cached) {
    deps.onGone() // its finalizer has proved the revocation, unless somebody removed it by force
    return {}
  }
  const changed = deps.changes.since(ref)
  const observed = await advance(gather(cached, deps), deps, changed)
  if (changed.aborted) return {} // the queue has the object again, and its status would be of yesterday
  if (observed.apiKey.metadata.deletionTimestamp !== undefined) return afterDeletionStep(observed)
  await deps.calm.tell(changed, () => writeStatus(observed, deps))
  if (changed.aborted) return {}
  return requeue(observed)
}

async function advance(start: Observed, deps: ApiKeyDeps, changed: AbortSignal): Promise<Observed> {
  let observed = start
  for (let count = 0; count < MAX_STEPS; count++) {
    const step = decide(observed)
    if (!step || changed.aborted) return observed
    observed = { ...observed, ...(await applyInTurn(step, observed, deps, changed)) }
  }
  throw new Error(`ApiKey ${start.apiKey.metadata.namespace}/${start.apiKey.metadata.name} does not settle in ${MAX_STEPS} steps`)
}

/** What makes a change act goes first and is known to be under way; waiting for gateways holds up nobody else's status. */
async function applyInTurn(step: Step, observed: Observed, deps: ApiKeyDeps, changed: AbortSignal): Promise<Change> {
  if (canWait(step, observed)) await deps.calm.wait(changed)
  else if (step.do !== 'confirm') return deps.calm.act(() => apply(step, observed, deps, changed))
  return apply(step, observed, deps, changed)
}

/** A look at the Secret of a key that was issued changes nothing for its users: under a storm of changes it comes after them. */
function canWait(step: Step, { line }: Observed): boolean {
  return step.do === 'look-at-secret' && currentVerifier(line)?.state !== 'Minted' && line !== undefined
}

function afterDeletionStep({ apiKey }: Observed): ReconcileResult {
  return apiKey.metadata.finalizers?.includes(FINALIZER) ? { requeueAfterMs: DELETION_RETRY_MS } : {}
}

async function writeStatus(observed: Observed, deps: ApiKeyDeps): Promise<void> {
  const { apiKey } = observed
  const status = describe(observed)
  if (sameStatus(status, apiKey.status)) return
  deps.assertLeading()
  await deps.kube.applyStatus(apiKeys, { ...apiKey, metadata: identityOf(apiKey), status })
  for (const { reason, note } of eventsOf(observed, status)) deps.recordEvent(apiKey, reason, note)
}

function requeue(observed: Observed): ReconcileResult {
  const expiry = observed.line?.exp ?? 0
  const expires = expiry > observed.now ? { requeueAfterMs: expiry - observed.now } : {}
  if (wasProgrammed(observed) || isAcknowledged(observed)) return expires
  const { confirmation, projectedRev, apiKey } = observed
  if (projectedRev === undefined || !confirmation?.known)
    return { requeueAfterMs: Math.min(WAITING_RETRY_MS, expires.requeueAfterMs ?? Infinity) }
  return { ...expires, pending: { rev: projectedRev, uid: uidOf(apiKey), ready: confirmation.ready, total: confirmation.total } }
}
