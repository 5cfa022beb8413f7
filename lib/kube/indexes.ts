/** Indexes that more than one kind has. */
import { namespaceOf, uidOf, type Informer, type KubeObject } from './port.ts'
import { type EndpointSlice, SERVICE_LABEL } from './resources.ts'

/** By metadata.uid. */
export const UID_INDEX = 'uid'
/** EndpointSlices by `namespace/service`. */
const SERVICE_INDEX = 'service'

/** Adds the index `uid`. */
export function addUidIndex<T extends KubeObject>(informer: Pick<Informer<T>, 'addIndex'>): void {
  informer.addIndex(UID_INDEX, uids)
}

/** Adds the index of EndpointSlices by their Service. */
export function addServiceIndex(slices: Pick<Informer<EndpointSlice>, 'addIndex'>): void {
  slices.addIndex(SERVICE_INDEX, services)
}

/** EndpointSlices of one Service. */
export function slicesOf(slices: Pick<Informer<EndpointSlice>, 'byIndex'>, namespace: string, service: string): Iterable<EndpointSlice> {
  return slices.byIndex(SERVICE_INDEX, `${namespace}/${service}`)
}

/** A second call of `addIndex` must pass the same function, hence the names. */
const uids = (object: KubeObject): readonly string[] => [uidOf(object)]
const services = (slice: EndpointSlice): readonly string[] => [`${namespaceOf(slice)}/${slice.metadata.labels?.[SERVICE_LABEL] ?? ''}`]
