/** Endpoints of a Service port, from its EndpointSlices. Pure. */
import type { EndpointSlice, Service } from '../kube/resources.ts'

/** A record holds at most this many endpoints of one backend. */
const MAX_ENDPOINTS = 1_000

/** What is known of one `service` backend. */
export type ServiceEndpoints =
  { readonly found: false; readonly problem: string } | { readonly found: true; readonly ready: readonly string[]; readonly total: number }

/**
 * Ready, non-terminating addresses, sorted. The ClusterIP is not used: a connection to a dead pod behind it stalls until a time-out.
 * @param slices those of this Service
 */
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
    const target = targetPort(slice, servicePort.name ?? '')
    if (target === undefined) continue
    const endpoints = slice.endpoints ?? []
    total += endpoints.length
    const host = (address: string): string => (slice.addressType === 'IPv6' ? `[${address}]` : address)
    for (const address of endpoints.filter(isUsable).flatMap(({ addresses }) => addresses)) ready.add(`${host(address)}:${target}`)
  }
  return { found: true, ready: [...ready].sort().slice(0, MAX_ENDPOINTS), total }
}

/** A slice names its ports as the Service does; the number is that of the pods. */
function targetPort(slice: EndpointSlice, name: string): number | undefined {
  return slice.ports?.find((candidate) => (candidate.name ?? '') === name)?.port ?? undefined
}

/** An absent `ready` means ready (discovery.k8s.io/v1). */
function isUsable({ conditions }: NonNullable<EndpointSlice['endpoints']>[number]): boolean {
  return conditions?.ready !== false && conditions?.terminating !== true
}
