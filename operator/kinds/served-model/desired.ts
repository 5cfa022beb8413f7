/** Derives the record for gateways, and the problems of the manifest, from one ServedModel and its surroundings. Pure. */
import { createHmac } from 'node:crypto'
import { type AddressRules, checkBackendUrl, checkEndpoint } from '#contract/values/backend-address.ts'
import { servedRoutes } from '#contract/values/call-routes.ts'
import { forwardableHeaders, refusalOfCredentialHeader, refusalOfHeader } from '#contract/values/forward-headers.ts'
import { FORMAT } from '#contract/records/format.ts'
import type { BackendRecord, ModelPricing, ModelRecord } from '#contract/records/model-record.ts'
import { toMicros } from '#api/decimal-amount.ts'
import type { ServedModel } from '#api/served-model.ts'
import { createdMs, namespaceOf, uidOf } from '#kube/port.ts'
import { missingHostEntry, UPSTREAM_HOSTS_ANNOTATION } from './backend-credential.ts'
import { servedName } from './names.ts'
import type { DesiredModel, ModelSurroundings, ObservedBackend, ObservedCredential, Problem } from './observed.ts'
import { allowedNamespaces } from './publishing.ts'

type BackendSpec = ServedModel['spec']['backends'][number]

/** Leaves out each backend that has a blocking problem; the other backends serve. */
export function desiredModel(around: ModelSurroundings): DesiredModel {
  if (!around.hasPlace) return { record: undefined, problems: [limitReached(around)], keepsMounted: false }
  const backends: BackendRecord[] = []
  const problems: Problem[] = []
  around.model.spec.backends.forEach((spec, index) => {
    const seen = around.backends[index]
    if (seen === undefined) return
    const problem = problemOf(spec, seen, around.addresses)
    if (problem) problems.push(problem)
    if (problem?.isBlocking !== true) backends.push(backendRecord(around.model, spec, seen, around.addresses))
  })
  const others = [mountRefused(around), publishingRefused(around), nameConflict(around), headersRefused(around)]
  for (const problem of others) if (problem) problems.push(problem)
  return {
    record: backends.length > 0 ? modelRecord(around, backends) : undefined,
    problems: problems.toSorted((a, b) => Number(b.isBlocking) - Number(a.isBlocking)),
    keepsMounted: around.backends.some(({ credential: { state } }) => state === 'Unread' || state === 'Unreadable' || state === 'Adopted'),
  }
}

/** The record of a cold start. The record has Service names instead of endpoints, so only manifests change the record. */
export function coldStartRecord(record: ModelRecord): ModelRecord {
  return { ...record, revision: 0, backends: record.backends.map((backend) => ({ ...backend, endpoints: [] })) }
}

function modelRecord({ model, publishing, selectedNamespaces, secret }: ModelSurroundings, backends: BackendRecord[]): ModelRecord {
  const { metadata, spec } = model
  const forwardHeaders = forwardableHeaders(spec.forwardHeaders ?? [])
  return {
    version: FORMAT.writes,
    revision: 0,
    uid: uidOf(model),
    namespace: namespaceOf(model),
    name: metadata.name,
    createdMs: createdMs(model),
    servedName: servedName(model),
    aliases: [...(spec.aliases ?? [])].sort(),
    allowedNamespaces: allowedNamespaces(model, publishing, selectedNamespaces),
    ...(spec.pricing && { pricing: pricingOf(spec.pricing) }),
    ...fieldsAsWritten(spec),
    timeouts: spec.timeouts,
    ...(forwardHeaders.length > 0 && { forwardHeaders }),
    ...(spec.cacheSalt === 'Tenant' && { cacheSalt: saltKey(secret, uidOf(model)) }),
    ...(spec.refusedFields?.length && { refusedFields: [...spec.refusedFields].sort() }),
    backends,
  }
}

/** Key of the salts of one model. A reader of manifests cannot compute the key, and the key tells nothing about those of other models. */
function saltKey(secret: string, uid: string): string {
  return createHmac('sha256', secret).update(`cache-salt ${uid}`).digest('hex')
}

function fieldsAsWritten({ description, contextTokens, maxOutputTokens }: ServedModel['spec']): Partial<ModelRecord> {
  return {
    ...(description !== undefined && { description }),
    ...(contextTokens !== undefined && { contextTokens }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
  }
}

function pricingOf(pricing: NonNullable<ServedModel['spec']['pricing']>): ModelPricing {
  const { inputPerMillion, outputPerMillion, cachedInputPerMillion, cacheWritePerMillion, perRequest } = pricing
  return {
    inputPerMillion: toMicros(inputPerMillion),
    outputPerMillion: toMicros(outputPerMillion),
    cachedInputPerMillion: toMicros(cachedInputPerMillion ?? inputPerMillion),
    ...(cacheWritePerMillion !== undefined && { cacheWritePerMillion: toMicros(cacheWritePerMillion) }),
    ...(perRequest !== undefined && { perRequest: toMicros(perRequest) }),
  }
}

function backendRecord(model: ServedModel, spec: BackendSpec, seen: ObservedBackend, rules: AddressRules): BackendRecord {
  const ready = seen.service?.found ? seen.service.ready : []
  const { credential } = seen
  const isKnown = credential.state === 'Found' || credential.state === 'Adopted'
  return {
    name: spec.name,
    endpoints: ready.filter((endpoint) => checkEndpoint(endpoint, rules).ok),
    service: spec.service ? `${spec.service.name}.${namespaceOf(model)}.svc:${spec.service.port}` : null,
    url: spec.url ?? null,
    upstreamModel: spec.upstreamModel ?? servedName(model),
    weight: spec.weight,
    routes: servedRoutes(spec),
    engine: spec.engine,
    streamUsage: spec.streamUsage,
    credentialSum: isKnown ? credential.sum : null,
    formerCredentialSum: isKnown ? (credential.former ?? null) : null,
    ...credentialPlace(spec),
    ...fixedHeaders(spec),
  }
}

/** Nothing for `Authorization: Bearer`, which is the default of gateways. */
function credentialPlace({ authSecretRef }: BackendSpec): Pick<BackendRecord, 'credentialHeader' | 'credentialScheme'> {
  if (authSecretRef === undefined) return {}
  const header = authSecretRef.header.toLowerCase()
  const scheme = authSecretRef.scheme ?? (header === 'authorization' ? 'Bearer' : '')
  return header === 'authorization' && scheme === 'Bearer' ? {} : { credentialHeader: header, credentialScheme: scheme }
}

function fixedHeaders({ headers = [] }: BackendSpec): Pick<BackendRecord, 'headers'> {
  const allowed = headers.filter(({ name }) => refusalOfHeader(name) === undefined)
  return allowed.length === 0 ? {} : { headers: allowed.map(({ name, value }) => ({ name: name.toLowerCase(), value })) }
}

function problemOf(spec: BackendSpec, seen: ObservedBackend, rules: AddressRules): Problem | undefined {
  const checked = spec.url === undefined ? undefined : checkBackendUrl(spec.url, rules)
  if (checked?.ok === false) return addressRefused(spec, checked.reason)
  if (seen.service && !seen.service.found) {
    const message = `backends[${spec.name}].service: ${seen.service.problem}. The backend is used as soon as it exists.`
    return blocking('ServiceNotFound', message)
  }
  const { name, authSecretRef } = spec
  if (authSecretRef === undefined) return undefined
  const refused = refusalOfCredentialHeader(authSecretRef.header)
  if (refused === undefined) return credentialProblem(spec, authSecretRef.name, seen.credential, rules.allowLoopback)
  return blocking('HeaderRefused', `backends[${name}].authSecretRef.header may not hold the credential, since ${refused}.`)
}

function addressRefused({ name, url = '' }: BackendSpec, reason: string): Problem {
  const isInside = checkBackendUrl(url, { allowLoopback: false, allowCluster: true }).ok
  const remedy = isInside
    ? ' Name a Service of this namespace in service, or ask the administrator to add the namespace to the chart value scope.clusterAddresses.'
    : ''
  return blocking('AddressRefused', `backends[${name}].url is refused: ${reason}.${remedy}`)
}

function credentialProblem(spec: BackendSpec, secret: string, credential: ObservedCredential, allowLoopback: boolean): Problem | undefined {
  const field = `backends[${spec.name}].authSecretRef`
  switch (credential.state) {
    case 'NotFound':
      return blocking('SecretNotFound', `${field}: ${credential.problem}.`)
    case 'Unread':
      return blocking('SecretUnreadable', `${field}: Secret ${secret} has not been read yet.`)
    case 'Unreadable':
      return blocking('SecretUnreadable', `${field}: Secret ${secret} cannot be read (${credential.problem}). The operator keeps trying.`)
    case 'Adopted':
    case 'Found':
      return hostNotAllowed(spec, secret, credential, allowLoopback) ?? stillUsed(field, secret, credential.unreadable)
    case 'NotUsed':
      return undefined
  }
}

/** A Service backend is in the namespace of the Secret. Only a URL can lead elsewhere. */
function hostNotAllowed(spec: BackendSpec, secret: string, credential: ObservedCredential, allowLoopback: boolean): Problem | undefined {
  if (spec.url === undefined || credential.state !== 'Found') return undefined
  const entry = missingHostEntry(spec.url, credential.origins, allowLoopback)
  if (entry === undefined) return undefined
  const caution = entry.startsWith('http:') ? ' Plain http sends the credential unencrypted; prefer https.' : ''
  const message =
    `backends[${spec.name}].authSecretRef: Secret ${secret} may not be sent to ${new URL(spec.url).host}. ` +
    `Its owner can allow that by an entry in the annotation ${UPSTREAM_HOSTS_ANNOTATION}: "${entry}".${caution}`
  return blocking('CredentialHostNotAllowed', message)
}

function stillUsed(field: string, secret: string, unreadable: string | undefined): Problem | undefined {
  if (unreadable === undefined) return undefined
  const message = `${field}: Secret ${secret} cannot be read (${unreadable}). The credential of the last good read stays in use.`
  return { reason: 'SecretUnreadable', message, isBlocking: false }
}

function mountRefused({ mountRefusal, backends }: ModelSurroundings): Problem | undefined {
  if (mountRefusal === undefined) return undefined
  const isBlocking = backends.some(({ credential }) => credential.state === 'Found')
  return { reason: 'CredentialsFull', message: `The gateways cannot mount this model: ${mountRefusal}.`, isBlocking }
}

function publishingRefused({ model, publishing }: ModelSurroundings): Problem | undefined {
  if (publishing === 'Private' || publishing === 'Published') return undefined
  const why =
    publishing === 'NotAllowed'
      ? `Namespace ${namespaceOf(model)} may not publish models to other namespaces. Ask the cluster's administrator to add it to the chart value scope.publishers, or set allowedNamespaces.from to Same.`
      : 'allowedNamespaces.from is Selector, and the operator may not read the labels of namespaces. Ask the administrator to set the chart value scope.namespaceLabels, or set allowedNamespaces.from to All or Same.'
  return {
    reason: 'PublishingNotAllowed',
    message: `${why} Until then only keys of namespace ${namespaceOf(model)} can use the model.`,
    isBlocking: false,
  }
}

function nameConflict({ model, lostNames }: ModelSurroundings): Problem | undefined {
  if (lostNames.length === 0) return undefined
  const names = Array.from(
    Map.groupBy(lostNames, ({ winner }) => winner),
    ([winner, lost]) => `${quoted(lost)} ${lost.length === 1 ? 'belongs' : 'belong'} to ServedModel ${winner}, which is older`,
  ).join('; ')
  const message = `${names}. Choose another name or alias; the other names of this model work.`
  return { reason: 'NameConflict', message, isBlocking: lostNames.some(({ name }) => name === servedName(model)) }
}

function quoted(names: ModelSurroundings['lostNames']): string {
  return names.map(({ name }) => `"${name}"`).join(', ')
}

/** Comes last: the others say who can call the model. */
function headersRefused({ model: { spec } }: ModelSurroundings): Problem | undefined {
  const named = [
    ...(spec.forwardHeaders ?? []).map((name, at) => ({ name, place: `forwardHeaders[${at}]`, verb: 'forwarded' })),
    ...spec.backends.flatMap((backend) =>
      (backend.headers ?? []).map(({ name }, at) => ({ name, place: `backends[${backend.name}].headers[${at}]`, verb: 'sent' })),
    ),
  ]
  const refused = named.flatMap(({ name, place, verb }) => {
    const why = refusalOfHeader(name)
    return why === undefined ? [] : [`${place}: "${name}" may not be ${verb}, since ${why}`]
  })
  if (refused.length === 0) return undefined
  const message = `${refused.join('; ')}. Take such names out of the list; the other headers are sent.`
  return { reason: 'HeaderRefused', message, isBlocking: false }
}

function limitReached({ model, namespaceLimit }: ModelSurroundings): Problem {
  const message =
    `Namespace ${namespaceOf(model)} has more than ${namespaceLimit} ServedModels, and this is one of the youngest. ` +
    'The ServedModel waits until an older one is deleted or the administrator raises the limit.'
  return blocking('NamespaceLimitReached', message)
}

function blocking(reason: Problem['reason'], message: string): Problem {
  return { reason, message, isBlocking: true }
}
