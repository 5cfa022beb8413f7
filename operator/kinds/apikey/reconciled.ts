/** The interface of ApiKeys to the reconciler. */
import { apiKeys } from '#api/resources.ts'
import { type ObjectRef, uidOf } from '#kube/port.ts'
import { itemKey } from '../../loop/item.ts'
import type { Reconciled } from '../../loop/reconciler.ts'
import { apply } from './apply.ts'
import type { ApiKeyDeps } from './deps.ts'
import { gather } from './observe.ts'
import { isSettledOnGateways } from './key-state.ts'
import { nextEndMs } from './keyring-entry.ts'
import { nextStep, reportStep } from './steps.ts'
import type { Step } from './step.ts'
import type { FailureTopic, Observed } from './observed.ts'

const KIND = apiKeys.kind

/** The topic under which the failure of a step is reported. */
function topicOf(step: Step['do']): FailureTopic {
  if (step === 'read-secret') return 'SecretRead'
  return step === 'write-secret' || step === 'try-secret' ? 'SecretWrite' : 'Other'
}

/** Connects gather, checks, apply and memory of ApiKeys. */
export function reconciled(deps: ApiKeyDeps): Reconciled<Observed, Step> {
  const { memory, acknowledgements } = deps
  const uidAt = (ref: ObjectRef): string => deps.apiKeys.get(ref)?.metadata.uid ?? ''
  return {
    name: KIND,
    gather: (ref) => gather(ref, deps),
    nextStep,
    report: reportStep,
    apply: (step, observed) => apply(step, observed, deps),
    waits(ref, observed) {
      if (observed.projected === undefined || isSettledOnGateways(observed)) return
      const { programmed } = observed.apiKey.status ?? {}
      acknowledgements.expect(itemKey({ kind: KIND, ref }), observed.projected.revision, uidOf(observed.apiKey), programmed)
    },
    nextChangeAtMs: ({ entry, now }) => nextEndMs(entry, now),
    failed: (ref, step, error) => memory.failed(uidAt(ref), topicOf(step.do), error),
    succeeded: (ref, step) => memory.succeeded(uidAt(ref), topicOf(step.do)),
    settled: (ref) => memory.settled(uidAt(ref)),
  }
}
