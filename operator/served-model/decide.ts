/** From one ServedModel and its surroundings to the record that gateways get, and what is wrong with it. Pure. */
import { judgeBackendUrl, judgeEndpoint } from '../../gateway/shared/backend-address.ts'
import { UPSTREAM_FILE_PREFIX } from '../../gateway/shared/keyring-line.ts'
import { type BackendRecord, MODEL_RECORD_SCHEMA, type ModelRecord } from '../../gateway/shared/model-record.ts'
import type { ServedModelJudgement } from '../api/conditions.ts'
import type { ServedModel } from '../api/served-model.ts'
import { servedName } from './names.ts'
import type { ObservedBackend, ObservedModel } from './observed.ts'

type BackendSpec = ServedModel['spec']['backends'][number]
/** The judgement of Accepted. */
export type Acceptance = Extract<ServedModelJudgement, { type: 'Accepted' }>

/** What shall be. `record` is undefined when no backend can be used: gateways then do not know the model. */
export interface ModelChanges {
  readonly record: ModelRecord | undefined
  readonly accepted: Acceptance
}

/** Name of the file with the token of a backend, below the folder that gateways mount. */
export function upstreamFile(uid: string, backend: string): string {
  return `${UPSTREAM_FILE_PREFIX}${uid}.${backend}`
}

/** A wrong backend is left out and named; the others serve. */
export function decide(observed: ObservedModel): ModelChanges {
  const { model } = observed
  const backends: BackendRecord[] = []
  const problems: Acceptance[] = []
  model.spec.backends.forEach((spec, index) => {
    const seen = observed.backends[index]
    const problem = seen && problemOf(spec, seen, observed.allowLoopback)
    if (problem) problems.push(problem)
    else if (seen) backends.push(backendRecord(model, spec, seen, observed.allowLoopback))
  })
  const problem = problems[0] ?? nameConflict(observed)
  const accepted: Acceptance = problem ?? { type: 'Accepted', reason: 'Accepted', message: 'The manifest is acted on.' }
  return { record: backends.length > 0 ? modelRecord(observed, backends) : undefined, accepted }
}

/** The record of a cold start: Service names instead of endpoints, so that it changes with manifests only. */
export function coldStartRecord(record: ModelRecord): ModelRecord {
  return { ...record, rev: 0, backends: record.backends.map((backend) => ({ ...backend, eps: [] })) }
}

function modelRecord({ model, selectedNamespaces }: ObservedModel, backends: BackendRecord[]): ModelRecord {
  const { metadata, spec } = model
  const namespace = metadata.namespace ?? ''
  const { from } = spec.allowedNamespaces
  return {
    v: MODEL_RECORD_SCHEMA,
    rev: 0,
    uid: metadata.uid ?? '',
    ns: namespace,
    name: metadata.name,
    created: Date.parse(metadata.creationTimestamp ?? '') || 0,
    served: servedName(model),
    aliases: [...(spec.aliases ?? [])].sort(),
    allow: from === 'All' ? '*' : [...new Set([namespace, ...(from === 'Selector' ? selectedNamespaces : [])])].sort(),
    to: { first: spec.timeouts.firstByteSeconds, idle: spec.timeouts.idleSeconds, total: spec.timeouts.totalSeconds },
    backends,
  }
}

function backendRecord(model: ServedModel, spec: BackendSpec, seen: ObservedBackend, allowLoopback: boolean): BackendRecord {
  const { namespace, uid } = model.metadata
  const ready = seen.service?.found ? seen.service.ready : []
  return {
    name: spec.name,
    eps: ready.filter((endpoint) => judgeEndpoint(endpoint, { allowLoopback }).ok),
    svc: spec.service ? `${spec.service.name}.${namespace}.svc:${spec.service.port}` : null,
    url: spec.url ?? null,
    model: spec.upstreamModel ?? servedName(model),
    w: spec.weight,
    messages: spec.messages,
    auth: spec.authSecretRef ? upstreamFile(uid ?? '', spec.name) : null,
    authSum: seen.token.state === 'Found' ? seen.token.sum : null,
  }
}

function problemOf(spec: BackendSpec, seen: ObservedBackend, allowLoopback: boolean): Acceptance | undefined {
  const type = 'Accepted'
  if (spec.url !== undefined) {
    const judged = judgeBackendUrl(spec.url, { allowLoopback })
    if (!judged.ok) return { type, reason: 'AddressRefused', message: `backends[${spec.name}].url is refused: ${judged.reason}.` }
  }
  if (seen.service && !seen.service.found) {
    return {
      type,
      reason: 'ServiceNotFound',
      message: `backends[${spec.name}].service: ${seen.service.problem}. The backend is used as soon as it is there.`,
    }
  }
  if (seen.token.state === 'NotFound') {
    return { type, reason: 'SecretNotFound', message: `backends[${spec.name}].authSecretRef: ${seen.token.problem}.` }
  }
  return undefined
}

function nameConflict({ lostNames }: ObservedModel): Acceptance | undefined {
  if (lostNames.length === 0) return undefined
  const names = lostNames.map(({ name, winner }) => `"${name}" belongs to ServedModel ${winner}, which is older`).join('; ')
  return {
    type: 'Accepted',
    reason: 'NameConflict',
    message: `${names}. Choose another name or alias; the other names of this model work.`,
  }
}
