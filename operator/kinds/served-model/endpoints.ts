/** Endpoints of a Service port, from its EndpointSlices. Pure. */
import type { EndpointSlice, Service } from '#kube/resources.ts'

/** Most endpoints of one backend in a record. */
const MAX_ENDPOINTS = 1_000

/** Endpoints of one `service` backend, or why they are unknown. */
export type ServiceEndpoints =
  { readonly found: false; readonly problem: string } | { readonly found: true; readonly ready: readonly string[]; readonly total: number }

/** Ready addresses, sorted. Gateways do not use the ClusterIP: a connection to a dead pod behind it stalls until a time-out. */
export function serviceEndpoints(
  name: string,
  port: number,
  service: Service | undefined,
  slices: Iterable<EndpointSlice>,
): ServiceEndpoints {
  if (!service) return { found: false, problem: `Service ${name} does not exist in this namespace` }
  const servicePort = service.spec?.ports?.find((candidate) => candidate.port === port)
  if (!servicePort) return { found: false, problem: `Service ${name} has no port ${port}` }
  const ready = new Set<string>()
  let total = 0
  for (const slice of slices) {
    const podPort = podPortOf(slice, servicePort.name ?? '')
    if (podPort === undefined) continue
    const endpoints = slice.endpoints ?? []
    total += endpoints.length
    const host = (address: string): string => (slice.addressType === 'IPv6' ? `[${address}]` : address)
    for (const address of endpoints.filter(isUsable).flatMap(({ addresses }) => addresses)) ready.add(`${host(address)}:${podPort}`)
  }
  return { found: true, ready: [...ready].sort().slice(0, MAX_ENDPOINTS), total }
}

/** Finds the port of the pods. A slice has the port names of the Service, with the numbers of the pods. */
function podPortOf(slice: EndpointSlice, name: string): number | undefined {
  return slice.ports?.find((candidate) => (candidate.name ?? '') === name)?.port ?? undefined
}

/** An absent `ready` means ready (discovery.k8s.io/v1). */
function isUsable({ conditions }: NonNullable<EndpointSlice['endpoints']>[number]): boolean {
  return conditions?.ready !== false && conditions?.terminating !== true
}
