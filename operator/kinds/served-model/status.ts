/** Derives the status of a ServedModel. Pure. */
import { conditionList, findCondition } from '#api/condition-list.ts'
import { SERVED_MODEL_CONDITIONS, type ServedModelCondition } from '#api/conditions.ts'
import type { ServedModel, ServedModelStatus } from '#api/served-model.ts'
import { servedName } from './names.ts'
import type { DesiredModel, ModelSurroundings, ObservedBackend, ObservedProjection, Problem } from './observed.ts'

type ConditionFor<Type extends ServedModelCondition['type']> = Extract<ServedModelCondition, { type: Type }>

const ALIASES_COLUMN = 60
const MAX_MESSAGE = 4_096
/** Time within which the kubelet usually updates the files of a pod after a change of a Secret, ms. */
export const MOUNT_DELAY_MS = 120_000
/** Problems that only an edit of this object ends. A change of other objects ends all other problems. */
const STALLING = new Set<Problem['reason']>(['AddressRefused', 'NameConflict'])

export interface ModelProgress extends Pick<ObservedProjection, 'confirmation' | 'storeAvailable'> {
  /** ms since the mounted credentials of the model changed. */
  readonly mountedForMs: number
}

interface BackendCount {
  readonly name: string
  readonly ready: number
  readonly total: number
}

interface Assessment {
  readonly around: ModelSurroundings
  readonly desired: DesiredModel
  readonly progress: ModelProgress
  readonly backends: readonly BackendCount[]
  readonly accepted: ConditionFor<'Accepted'>
}

export function statusOf(around: ModelSurroundings, desired: DesiredModel, progress: ModelProgress, nowMs: number): ServedModelStatus {
  const { model } = around
  const backends = around.backends.map((backend) => ({ name: backend.name, ...usableOf(backend, around, desired) }))
  const accepted = acceptedCondition(desired)
  const assessment = { around, desired, progress, backends, accepted }
  const healthy = healthCondition(assessment)
  const ready = readyCondition(assessment, healthy)
  const stalled = stalledCondition(desired, ready)
  const { pricing, aliases: names = [] } = model.spec
  const aliases = names.join(',')
  return {
    observedGeneration: model.metadata.generation ?? 0,
    servedName: servedName(model),
    backends,
    summary: {
      backends: `${backends.filter((backend) => backend.ready > 0).length}/${backends.length}`,
      aliases: aliases.length > ALIASES_COLUMN ? `${aliases.slice(0, ALIASES_COLUMN - 1)}…` : aliases,
      ...(pricing && { price: priceWords(pricing) }),
    },
    conditions: conditionList(SERVED_MODEL_CONDITIONS, [ready, accepted, healthy, pricedCondition(model), ...(stalled ? [stalled] : [])], {
      previous: model.status?.conditions,
      generation: model.metadata.generation ?? 0,
      nowMs,
    }),
  }
}

/** Usable endpoints. Gateways do not know a backend that the record leaves out because of a problem. */
function usableOf(backend: ObservedBackend, { hasPlace }: ModelSurroundings, { record }: DesiredModel): { ready: number; total: number } {
  const isLeftOut = hasPlace && record?.backends.some(({ name }) => name === backend.name) !== true
  return isLeftOut ? { ...endpointsOf(backend), ready: 0 } : endpointsOf(backend)
}

/** Endpoints of a backend: all that the cluster knows, minus those that a gateway reports as down. */
function endpointsOf(backend: ObservedBackend): { ready: number; total: number } {
  const known = knownEndpoints(backend)
  const total = backend.service?.found ? backend.service.total : backend.service ? 0 : 1
  return { ready: backend.reachable ? Math.min(known, backend.reachable.up) : known, total }
}

function knownEndpoints({ service }: ObservedBackend): number {
  if (service === undefined) return 1
  return service.found ? service.ready.length : 0
}

function acceptedCondition({ problems: [first, ...rest] }: DesiredModel): ConditionFor<'Accepted'> {
  if (first === undefined) return { type: 'Accepted', reason: 'Accepted', message: 'The operator applies the manifest.' }
  const message = [first, ...rest].map((problem) => problem.message).join(' ')
  return { type: 'Accepted', reason: first.reason, message: message.slice(0, MAX_MESSAGE) }
}

/** `0.15/0.60`, and `0.15/0.60 + 0.002/call` for a model with a price per call. */
function priceWords({ inputPerMillion, outputPerMillion, perRequest }: NonNullable<ServedModel['spec']['pricing']>): string {
  return `${inputPerMillion}/${outputPerMillion}${perRequest === undefined ? '' : ` + ${perRequest}/call`}`
}

function pricedCondition({ spec }: ServedModel): ConditionFor<'Priced'> {
  if (spec.pricing !== undefined) return { type: 'Priced', reason: 'Priced', message: 'The model has a price.' }
  const message =
    'pricing is absent, so keys with a Currency budget that blocks cannot call the model. Set inputPerMillion and outputPerMillion ("0" is a price).'
  return { type: 'Priced', reason: 'PriceMissing', message }
}

function healthCondition({ around, desired, backends, accepted }: Assessment): ConditionFor<'BackendsHealthy'> {
  const type = 'BackendsHealthy'
  if (around.hasPlace && desired.record === undefined) return { type, reason: 'NotAccepted', message: accepted.message }
  const down = backends.filter((backend) => backend.ready === 0)
  const partly = backends.filter((backend) => backend.ready > 0 && backend.ready < backend.total)
  if (around.backends.every((backend) => knownEndpoints(backend) === 0))
    return { type, reason: 'NoEndpoints', message: 'No backend has a ready endpoint. Start a pod that the Service selects.' }
  if (down.length === backends.length) return { type, reason: 'Unreachable', message: `No gateway can use any backend: ${counts(down)}.` }
  if (down.length > 0 || partly.length > 0)
    return { type, reason: 'Degraded', message: `Not fully usable: ${counts([...down, ...partly])}.` }
  return { type, reason: 'Healthy', message: 'All backends can be used.' }
}

function counts(backends: readonly BackendCount[]): string {
  return backends.map(({ name, ready, total }) => `${name} (${ready}/${total})`).join(', ')
}

function readyCondition(assessment: Assessment, healthy: ConditionFor<'BackendsHealthy'>): ConditionFor<'Ready'> {
  const { around, desired, progress, accepted } = assessment
  const type = 'Ready'
  if (!desired.record || desired.problems.some(({ isBlocking }) => isBlocking))
    return { type, reason: 'NotAccepted', message: accepted.message }
  const pending = pendingCredentials(assessment)
  if (pending.length > 0) return { type, reason: 'NotProgrammed', message: credentialsPending(pending) }
  if (healthy.reason === 'NoEndpoints' || healthy.reason === 'Unreachable') return { type, reason: 'NoEndpoints', message: healthy.message }
  if (progress.confirmation?.state !== 'Acknowledged' && !wasReady(around.model))
    return { type, reason: 'NotProgrammed', message: notProgrammed(progress) }
  const isLimited = desired.problems.some(({ reason }) => reason === 'PublishingNotAllowed')
  return { type, reason: 'Ready', message: isLimited ? 'Keys of this namespace can call the model.' : 'Clients can call the model.' }
}

/** Backends whose credential may not have reached the pods yet; empty if any backend serves. */
function pendingCredentials({ around, progress, backends }: Assessment): readonly string[] {
  if (progress.mountedForMs >= MOUNT_DELAY_MS || backends.some(({ ready }) => ready > 0)) return []
  return around.backends.filter((backend) => backend.credential.state === 'Found' && knownEndpoints(backend) > 0).map(({ name }) => name)
}

function credentialsPending(backends: readonly string[]): string {
  return `The credential of ${backends.map((name) => `backends[${name}]`).join(', ')} is on its way into the gateway pods, which takes up to two minutes.`
}

/** Whether Ready was True for this generation. So a mere change of endpoints does not make Ready flap. */
function wasReady(model: ServedModel): boolean {
  const before = findCondition(model.status?.conditions, 'Ready')
  return before?.reason === 'Ready' && before.observedGeneration === model.metadata.generation
}

function notProgrammed({ confirmation, storeAvailable }: ModelProgress): string {
  if (!storeAvailable || confirmation?.state === 'Unknown')
    return 'Redis does not answer, so it is not known which gateways have the model.'
  if (confirmation === undefined) return 'The model is being written to Redis.'
  if (confirmation.state === 'NoGateways') return 'No gateway pod serves.'
  const { ready, total, missing } = confirmation
  return `${ready} of ${total} gateway pods have the model; not yet: ${missing.slice(0, 10).join(', ')}.`
}

/** Present only while Ready is False, because kstatus reads Stalled as failed. */
function stalledCondition({ problems }: DesiredModel, ready: ConditionFor<'Ready'>): ConditionFor<'Stalled'> | undefined {
  if (ready.reason !== 'NotAccepted') return undefined
  const blocking = problems.filter(({ isBlocking }) => isBlocking)
  const [first] = blocking
  if (first === undefined || !blocking.every(({ reason }) => STALLING.has(reason))) return undefined
  return { type: 'Stalled', reason: first.reason as ConditionFor<'Stalled'>['reason'], message: first.message } // one of STALLING
}
