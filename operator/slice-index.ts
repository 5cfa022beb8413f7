/** EndpointSlices by their Service: a watch delivers slices, reconcile asks by Service. */
import type { Informer } from './kube/port.ts'
import type { EndpointSlice } from './kube/resources.ts'
import { SERVICE_LABEL } from './served-model/endpoints.ts'

/** An index that an informer keeps current. */
export class SliceIndex {
  readonly #byService = new Map<string, Map<string, EndpointSlice>>()

  constructor(informer: Informer<EndpointSlice>) {
    for (const slice of informer.list()) this.#add(slice)
    informer.subscribe((before, after) => {
      if (before) this.#remove(before)
      if (after) this.#add(after)
    })
  }

  /** Slices of one Service. */
  of(namespace: string, service: string): Iterable<EndpointSlice> {
    return this.#byService.get(`${namespace}/${service}`)?.values() ?? []
  }

  #add(slice: EndpointSlice): void {
    const key = serviceOf(slice)
    const slices = this.#byService.get(key) ?? new Map<string, EndpointSlice>()
    slices.set(slice.metadata.name, slice)
    this.#byService.set(key, slices)
  }

  #remove(slice: EndpointSlice): void {
    const key = serviceOf(slice)
    const slices = this.#byService.get(key)
    slices?.delete(slice.metadata.name)
    if (slices?.size === 0) this.#byService.delete(key)
  }
}

/** `namespace/service` of a slice. */
export function serviceOf(slice: EndpointSlice): string {
  return `${slice.metadata.namespace}/${slice.metadata.labels?.[SERVICE_LABEL] ?? ''}`
}
