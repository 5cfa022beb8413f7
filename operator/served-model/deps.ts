/** What the reconcile of a ServedModel works with. */
import type { ServedModel } from '../api/served-model.ts'
import type { RecordEvent } from '../apikey/deps.ts'
import type { Clock } from '../../gateway/shared/clock.ts'
import type { Informer, KubePort } from '../kube/port.ts'
import type { EndpointSlice, Namespace, Service } from '../kube/resources.ts'
import type { Acknowledgements } from '../projection/acknowledgements.ts'
import type { Projection } from '../projection/projection.ts'
import type { GatewayFiles } from './gateway-files.ts'

/** All of it is passed in; nothing here is created by reconcile itself. */
export interface ServedModelDeps {
  readonly kube: KubePort
  readonly servedModels: Informer<ServedModel>
  readonly services: Informer<Service>
  readonly namespaces: Informer<Namespace>
  /** EndpointSlices of one Service. */
  readonly slicesOf: (namespace: string, service: string) => Iterable<EndpointSlice>
  readonly projection: Projection
  readonly acknowledgements: Acknowledgements
  readonly files: GatewayFiles
  readonly recordEvent: RecordEvent
  readonly clock: Clock
  readonly assertLeading: () => void
  readonly allowLoopback: boolean
}
