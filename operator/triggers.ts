/** Which change has which object looked at. Handlers only enqueue. */
import type { ApiKey } from './api/apikey.ts'
import type { Calm } from './apikey/calm.ts'
import type { ChangeSignals } from './apikey/change-signals.ts'
import { FINALIZER } from './apikey/decide.ts'
import type { Controllers } from './controllers.ts'
import type { ServedModel } from './api/served-model.ts'
import { namespaceOf, refOf } from './kube/port.ts'
import type { EndpointSlice, Namespace, Service } from './kube/resources.ts'
import type { OperatorInformers } from './operator-deps.ts'
import { namesOf } from './served-model/names.ts'
import { SERVICE_LABEL } from './served-model/endpoints.ts'

/** A rollout changes slices many times a second; the record follows at this pace, ms. */
const COALESCE_MS = 100

/** Call it once, when the caches are filled. */
export function subscribeAll(
  informers: OperatorInformers,
  controllers: Pick<Controllers, 'apiKeys' | 'servedModels'>,
  told: { readonly changes: ChangeSignals; readonly calm: Calm },
): void {
  const models = informers.servedModels
  informers.apiKeys.subscribe((before, after) => {
    const object = after ?? before
    if (!object || (before && after && !matters(before, after))) return
    controllers.apiKeys.enqueue(refOf(object))
    told.changes.changed(refOf(object))
    told.calm.disturbed()
  })
  models.subscribe((before, after) => {
    if (before && after && !matters(before, after)) return
    for (const model of sharingNames([before, after], models.list())) controllers.servedModels.enqueue(refOf(model))
    const object = after ?? before
    if (object) controllers.servedModels.enqueue(refOf(object))
  })
  const enqueueUsers = (namespace: string, service: string, delayMs: number): void => {
    for (const model of models.list()) {
      const uses = model.metadata.namespace === namespace && model.spec.backends.some((backend) => backend.service?.name === service)
      if (uses) controllers.servedModels.enqueueAfter(refOf(model), delayMs)
    }
  }
  informers.endpointSlices.subscribe((before, after) => {
    const slice: EndpointSlice | undefined = after ?? before
    if (slice) enqueueUsers(namespaceOf(slice), slice.metadata.labels?.[SERVICE_LABEL] ?? '', COALESCE_MS)
  })
  informers.services.subscribe((before, after) => {
    const service: Service | undefined = after ?? before
    if (service) enqueueUsers(namespaceOf(service), service.metadata.name, 0)
  })
  informers.namespaces.subscribe((before, after) => {
    if (sameLabels(before, after)) return
    for (const model of models.list()) if (model.spec.allowedNamespaces.from === 'Selector') controllers.servedModels.enqueue(refOf(model))
  })
}

/** Our own status writes come back as events; only what a user or the API server changed needs a look. */
function matters(before: ApiKey | ServedModel, after: ApiKey | ServedModel): boolean {
  const [a, b] = [before.metadata, after.metadata]
  return (
    a.uid !== b.uid ||
    a.generation !== b.generation ||
    a.deletionTimestamp !== b.deletionTimestamp ||
    (a.finalizers?.includes(FINALIZER) === true && b.finalizers?.includes(FINALIZER) !== true) ||
    JSON.stringify(a.annotations ?? {}) !== JSON.stringify(b.annotations ?? {})
  )
}

/** A name that one model takes or gives up changes what its rivals get. */
function* sharingNames(changed: ReadonlyArray<ServedModel | undefined>, all: Iterable<ServedModel>): Iterable<ServedModel> {
  const names = new Set(changed.flatMap((model) => (model ? namesOf(model) : [])))
  for (const model of all) if (namesOf(model).some((name) => names.has(name))) yield model
}

function sameLabels(before: Namespace | undefined, after: Namespace | undefined): boolean {
  return (
    before !== undefined &&
    after !== undefined &&
    JSON.stringify(before.metadata.labels ?? {}) === JSON.stringify(after.metadata.labels ?? {})
  )
}
