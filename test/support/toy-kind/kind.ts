/** The kind Toy as the operator runs it: its row in the operator's table of kinds. */
import { conditionList } from '#api/condition-list.ts'
import { sameStatus } from '#api/same-status.ts'
import type { KindController, KindRow, OperatorContext } from '../../../operator/kind-controller.ts'
import { type Informer, refOf } from '#kube/port.ts'
import { type Check, createReconcile, firstAnswer, type Reconciled, type StepBase } from '../../../operator/loop/reconciler.ts'
import { type Toy, TOY_CONDITIONS, toyKind } from './toy-kind.ts'

const KIND = toyKind.resource.kind

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
export const toyRow: KindRow = { api: toyKind, create: createToys }

function createToys(context: OperatorContext): KindController {
  const toys = context.informer(toyKind)
  const { clock, log } = context.deps
  const reconcile = createReconcile(reconciled(toys, context), { clock, log, random: Math.random })
  return {
    queues: [{ name: KIND, reconcile, informer: toys }],
    prepare: () => Promise.resolve([]),
    start() {
      toys.subscribe((before, after) => {
        if (after) context.enqueue(KIND, refOf(after), before ? 'change' : 'create')
      })
      for (const toy of toys.list()) context.enqueue(KIND, refOf(toy), 'create')
    },
    stop: () => Promise.resolve(),
  }
}

function reconciled(toys: Informer<Toy>, { deps, ownWrites }: OperatorContext): Reconciled<ObservedToy, Step> {
  return {
    name: KIND,
    gather(ref) {
      const cached = toys.get(ref)
      return cached && { toy: ownWrites.newest(cached), now: deps.clock.now() }
    },
    nextStep: (observed) => firstAnswer(CHECKS, observed),
    report: () => undefined,
    async apply(_step, observed) {
      ownWrites.remember(await deps.kube.applyStatus(toyKind.resource, { ...observed.toy, status: statusOf(observed) }))
    },
    nextChangeAtMs: () => undefined,
    failed: () => undefined,
    succeeded: () => undefined,
    settled: () => false,
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
