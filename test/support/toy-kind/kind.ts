/** The kind Toy as the operator runs it: its row in the operator's table of kinds. */
import { conditionList, sameStatus } from '#api/condition-list.ts'
import { refOf, uidOf } from '#kube/port.ts'
import { addFinalizer, isHeld, removeFinalizer } from '../../../operator/kinds/finalizer.ts'
import { type Kind, type KindRow, type OperatorContext, watch } from '../../../operator/kinds/kind.ts'
import { type Check, firstAnswer, type StepBase } from '../../../operator/loop/reconciler.ts'
import { type Toy, TOY_CONDITIONS, TOY_RECORD, toyCodec, toyKind } from './toy-kind.ts'

interface ObservedToy {
  readonly toy: Toy
  /** The wanted record; undefined for a toy that is deleted. */
  readonly text: string | undefined
  readonly isProjected: boolean
  readonly now: number
}

interface Step extends StepBase {
  readonly do: 'add-finalizer' | 'project' | 'write-status' | 'remove-finalizer'
}

export const toyRow: KindRow = { api: toyKind, create: toys }

function toys({ informers, kube, clock, ownWrites, projection }: OperatorContext): Kind<Toy, ObservedToy, Step> {
  const cache = informers.of(toyKind.resource)
  return {
    name: toyKind.resource.kind,
    informer: cache,
    watches: [watch(cache, (before, after) => (after ? [{ ref: refOf(after), level: before ? 'change' : 'create' }] : []))],
    prepare: async () => [],
    observe(ref) {
      const cached = cache.get(ref)
      if (!cached) return undefined
      const toy = ownWrites.newest(cached)
      const text = recordText(toy)
      return { toy, text, isProjected: projection.present(TOY_RECORD, uidOf(toy), text) !== undefined, now: clock.now() }
    },
    nextStep: (observed) => firstAnswer(CHECKS, observed),
    async apply(step, observed) {
      const { toy, text } = observed
      if (step.do === 'add-finalizer') return ownWrites.remember(await addFinalizer(toyKind, toy, kube))
      if (step.do === 'project') return projection.want(TOY_RECORD, uidOf(toy), text, step.level)
      if (step.do === 'remove-finalizer') return await removeFinalizer(toyKind, toy, kube)
      ownWrites.remember(await kube.applyStatus(toyKind.resource, { ...toy, status: statusOf(observed) }))
    },
  }
}

function recordText({ metadata, spec }: Toy): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return undefined
  const { name, namespace = '', uid = '' } = metadata
  return toyCodec.encode({ version: 1, revision: 0, uid, name, namespace, color: spec.color })
}

const CHECKS: ReadonlyArray<Check<ObservedToy, Step>> = [
  ({ toy, text }) => (text !== undefined && !isHeld(toy, toyKind) ? { do: 'add-finalizer', level: 'create' } : undefined),
  ({ isProjected }) => (isProjected ? undefined : { do: 'project', level: 'change' }),
  ({ toy, text }) => (text === undefined && isHeld(toy, toyKind) ? { do: 'remove-finalizer', level: 'change' } : undefined),
  (observed) => (sameStatus(statusOf(observed), observed.toy.status) ? undefined : { do: 'write-status', level: 'background' }),
]

/** A toy that may lose all its pieces counts as broken. */
function statusOf({ toy: { metadata, spec, status }, now }: ObservedToy): NonNullable<Toy['status']> {
  const reason = spec.sparePieces < spec.pieces ? 'Ready' : 'Broken'
  const message = TOY_CONDITIONS.Ready.reasons[reason].meaning
  const observedGeneration = metadata.generation ?? 0
  const context = { previous: status?.conditions, generation: observedGeneration, nowMs: now }
  return { observedGeneration, conditions: conditionList(TOY_CONDITIONS, [{ type: 'Ready', reason, message }], context) }
}
