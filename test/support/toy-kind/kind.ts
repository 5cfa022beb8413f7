/** The kind Toy as the operator runs it: its row in the operator's table of kinds. */
import { conditionList } from '#api/condition-list.ts'
import { sameStatus } from '#api/same-status.ts'
import { refOf } from '#kube/port.ts'
import { type Kind, type KindRow, type OperatorContext, watch } from '../../../operator/kinds/kind.ts'
import { createController } from '../../../operator/kinds/object-controller.ts'
import { type Check, firstAnswer, type StepBase } from '../../../operator/loop/reconciler.ts'
import { type Toy, TOY_CONDITIONS, toyKind } from './toy-kind.ts'

/** The observed state of one Toy. */
interface ObservedToy {
  readonly toy: Toy
  readonly now: number
}

interface Step extends StepBase {
  readonly do: 'write-status'
}

const CHECKS: ReadonlyArray<Check<ObservedToy, Step>> = [writeStatus]

/** One row of the table of kinds. */
export const toyRow: KindRow = { api: toyKind, create: (context) => createController(toys(context), context) }

function toys({ informer, kube, clock, ownWrites }: OperatorContext): Kind<Toy, ObservedToy, Step> {
  const cache = informer(toyKind)
  return {
    name: toyKind.resource.kind,
    informer: cache,
    watches: [watch(cache, (before, after) => (after ? [{ ref: refOf(after), level: before ? 'change' : 'create' }] : []))],
    observe(ref) {
      const cached = cache.get(ref)
      return cached && { toy: ownWrites.newest(cached), now: clock.now() }
    },
    nextStep: (observed) => firstAnswer(CHECKS, observed),
    async apply(_step, observed) {
      ownWrites.remember(await kube.applyStatus(toyKind.resource, { ...observed.toy, status: statusOf(observed) }))
    },
  }
}

function writeStatus(observed: ObservedToy): Step | undefined {
  return sameStatus(statusOf(observed), observed.toy.status) ? undefined : { do: 'write-status', level: 'background' }
}

/** A toy that may lose all its pieces counts as broken. */
function statusOf({ toy: { metadata, spec, status }, now }: ObservedToy): NonNullable<Toy['status']> {
  const reason = spec.sparePieces < spec.pieces ? 'Ready' : 'Broken'
  const message = TOY_CONDITIONS.Ready.reasons[reason].meaning
  const observedGeneration = metadata.generation ?? 0
  const context = { previous: status?.conditions, generation: observedGeneration, nowMs: now }
  return { observedGeneration, conditions: conditionList(TOY_CONDITIONS, [{ type: 'Ready', reason, message }], context) }
}
