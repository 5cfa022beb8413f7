/** Endpoints of a Service port, from its EndpointSlices. Pure. */
import type { EndpointSlice, Service } from '../kube/resources.ts'

/** A record holds at most this many endpoints of one backend. */
const MAX_ENDPOINTS = 1_000
/** The label by which a slice names its Service. */
export const SERVICE_LABEL = 'kubernetes.io/service-name'

/** What is known of one `service` backend. */
export type ServiceEndpoints =
  | { readonly found: false; readonly problem: string }
  | { readonly found: true; readonly ready: readonly string[]; readonly total: number }

/**
 * Ready, non-terminating addresses, sorted. The ClusterIP is not used: a connection to a dead pod behind it stalls until a time-out.
 * @param slices those of this Service
 */
export function serviceEndpoints(name: string, port: number, service: Service | undefined, slices: Iterable<EndpointSlice>): ServiceEndpoints {
  if (!service) return { found: false, problem: `Service ${name} does not exist in this namespace` }
  const servicePort = service.spec?.ports?.find((candidate) => candidate.port === port)
  if (!servicePort) return { found: false, problem: `Service ${name} has no port ${port}` }
  const ready = new Set<string>()
  let total = 0
  for (const slice of slices) {
    const target = slice.ports?.find((candidate) => (candidate.name ?? '') === (servicePort.name ?? ''))?.port
    if (typeof target !== 'number') continue
    for (const { addresses, conditions } of slice.endpoints ?? []) {
      total += 1
      if (conditions?.ready === false || conditions?.terminating === true) continue
      for (const address of addresses) ready.add(slice.addressType === 'IPv6' ? `[${address}]:${target}` : `${address}:${target}`)
    }
  }
  return { found: true, ready: [...ready].sort().slice(0, MAX_ENDPOINTS), total }
}
