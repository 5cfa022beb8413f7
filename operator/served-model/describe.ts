/** The status of a ServedModel. Pure. */
import { conditionList, findCondition } from '../api/condition-list.ts'
import { SERVED_MODEL_CONDITIONS, type ServedModelJudgement } from '../api/conditions.ts'
import type { ServedModel, ServedModelStatus } from '../api/served-model.ts'
import { type Confirmation, isConfirmed } from '../projection/acknowledgements.ts'
import type { Acceptance, ModelChanges } from './decide.ts'
import { servedName } from './names.ts'
import type { ObservedBackend, ObservedModel } from './observed.ts'

type JudgementFor<Type extends ServedModelJudgement['type']> = Extract<ServedModelJudgement, { type: Type }>
const ALIASES_COLUMN = 60

/** @param confirmation how far the record has come; undefined when there is none, or the store did not answer */
export function describe(
  observed: ObservedModel,
  changes: ModelChanges,
  confirmation: Confirmation | undefined,
  now: number,
): ServedModelStatus {
  const { model } = observed
  const backends = observed.backends.map((backend) => ({ name: backend.name, ...endpointsOf(backend) }))
  const usable = backends.filter((backend) => backend.ready > 0).length
  const healthy = judgeHealth(
    backends,
    observed.backends.some((backend) => endpointsOf({ ...backend, reachable: undefined }).ready > 0),
  )
  const aliases = (model.spec.aliases ?? []).join(',')
  return {
    observedGeneration: model.metadata.generation ?? 0,
    servedName: servedName(model),
    backends,
    summary: {
      backends: `${usable}/${backends.length}`,
      aliases: aliases.length > ALIASES_COLUMN ? `${aliases.slice(0, ALIASES_COLUMN - 1)}…` : aliases,
    },
    conditions: conditionList(SERVED_MODEL_CONDITIONS, [judgeReady(observed, changes, healthy, confirmation), changes.accepted, healthy], {
      previous: model.status?.conditions,
      generation: model.metadata.generation ?? 0,
      nowMs: now,
    }),
  }
}

/** What gateways can use of a backend: all that the cluster knows, less what a gateway reports as down. */
function endpointsOf(backend: ObservedBackend): { ready: number; total: number } {
  const known = backend.service === undefined ? 1 : backend.service.found ? backend.service.ready.length : 0
  const total = backend.service?.found ? backend.service.total : backend.service ? 0 : 1
  return { ready: backend.reachable ? Math.min(known, backend.reachable.up) : known, total }
}

/** @param isServed whether the cluster knows a ready endpoint, whatever the gateways make of it */
function judgeHealth(
  backends: ReadonlyArray<{ name: string; ready: number; total: number }>,
  isServed: boolean,
): JudgementFor<'BackendsHealthy'> {
  const type = 'BackendsHealthy'
  const down = backends.filter((backend) => backend.ready === 0)
  const partly = backends.filter((backend) => backend.ready > 0 && backend.ready < backend.total)
  if (!isServed) return { type, reason: 'NoEndpoints', message: 'No backend has a ready endpoint. Start a server behind the Service.' }
  if (down.length === backends.length) return { type, reason: 'Unreachable', message: `No gateway can use any backend: ${names(down)}.` }
  if (down.length > 0 || partly.length > 0)
    return { type, reason: 'Degraded', message: `Not fully usable: ${names([...down, ...partly])}.` }
  return { type, reason: 'Healthy', message: 'All backends can be used.' }
}

function names(backends: ReadonlyArray<{ name: string; ready: number; total: number }>): string {
  return backends.map(({ name, ready, total }) => `${name} (${ready}/${total})`).join(', ')
}

function judgeReady(
  observed: ObservedModel,
  { record, accepted }: ModelChanges,
  healthy: JudgementFor<'BackendsHealthy'>,
  confirmation: Confirmation | undefined,
): JudgementFor<'Ready'> {
  const type = 'Ready'
  if (!record || !isCallable(accepted, observed)) return { type, reason: 'NotAccepted', message: accepted.message }
  if (healthy.reason === 'NoEndpoints' || healthy.reason === 'Unreachable') return { type, reason: 'NoEndpoints', message: healthy.message }
  const programmed = confirmation !== undefined && isConfirmed(confirmation)
  if (!programmed && !wasReady(observed.model)) return { type, reason: 'NotProgrammed', message: notProgrammed(confirmation) }
  return { type, reason: 'Ready', message: 'The model can be called.' }
}

/** A model that lost an alias can still be called by its served name. */
function isCallable({ reason }: Acceptance, { model, lostNames }: ObservedModel): boolean {
  return reason === 'Accepted' || (reason === 'NameConflict' && !lostNames.some(({ name }) => name === servedName(model)))
}

/** A change of endpoints alone does not make Ready flap. */
function wasReady(model: ServedModel): boolean {
  const before = findCondition(model.status?.conditions, 'Ready')
  return before?.reason === 'Ready' && before.observedGeneration === model.metadata.generation
}

function notProgrammed(confirmation: Confirmation | undefined): string {
  if (!confirmation?.known) return 'Redis does not answer, so it is not known which gateways have the model.'
  if (confirmation.total === 0) return 'No gateway pod serves.'
  return `${confirmation.ready} of ${confirmation.total} gateway pods have the model; not yet: ${confirmation.missing.slice(0, 10).join(', ')}.`
}
