/** The release of every object, by the leader or by the command itself. */
import { randomUUID } from 'node:crypto'
import { messageOf } from '#platform/message-of.ts'
import { type Clock, sleep } from '#platform/clock.ts'
import { API_KINDS } from '#api/kinds.ts'
import { LEASE_NAME, type LeaderLease } from '#kube/leader.ts'
import type { KubePort } from '#kube/port.ts'
import { type Lease, leases } from '#kube/resources.ts'
import type { HeldKind } from '../kinds/finalizer.ts'
import { type Released, type ReleasedKind, releaseEvery } from '../kinds/release.ts'
import type { Progress } from './progress.ts'
import { ASK_AGAIN_MS, encodeRequest, NO_REQUEST, readProgress, readResult, REQUEST_ANNOTATION } from './uninstall-listener.ts'

const POLL_MS = 500
/** The kinds whose objects have a finalizer of the operator. */
export const HELD_KINDS = API_KINDS.filter(({ finalizer }) => finalizer !== undefined)
/** For messages. */
export const HELD: string = HELD_KINDS.map(({ resource }) => `${resource.kind}s`).join(' and ')

interface ReleaseObjectsDeps {
  readonly kube: Pick<KubePort, 'get' | 'list' | 'patch' | 'update'>
  readonly lease: Pick<LeaderLease, 'acquire' | 'annotate' | 'leading' | 'release'>
  readonly clock: Clock
  readonly config: {
    readonly namespace: string
    readonly watchNamespaces: readonly string[]
    readonly formerNamespaces: readonly string[]
  }
  readonly progress: Pick<Progress, 'counted' | 'moved'>
  readonly print: (line: string) => void
}

/** Asks the leader, and waits for the Lease meanwhile: as soon as no operator leads, this process releases the objects itself. */
export async function releaseObjects(deps: ReleaseObjectsDeps): Promise<Released> {
  const { kube, lease, clock, config, progress } = deps
  let isOver = false
  const acquired = lease.acquire().then(() => {
    isOver = true
  })
  const request = new Request(deps)
  while (!isOver) {
    const found = await kube.get(leases, { namespace: config.namespace, name: LEASE_NAME })
    const { annotations = {} } = found?.metadata ?? {}
    const result = readResult(annotations, request.id)
    if (result) {
      await lease.release() // ends the wait
      return result
    }
    progress.counted(readProgress(annotations, request.id))
    if (found?.spec?.holderIdentity) await request.write(found)
    await Promise.race([acquired, sleep(clock, POLL_MS)])
  }
  if (!lease.leading) throw new Error('the wait for the Lease was ended')
  return await releaseAlone(deps)
}

/** The request to the leader, written again from time to time: without that, the leader takes the uninstall for cancelled. */
class Request {
  readonly id = randomUUID()
  readonly #deps: ReleaseObjectsDeps
  #writtenAtMs = -Infinity

  constructor(deps: ReleaseObjectsDeps) {
    this.#deps = deps
  }

  async write(lease: Lease): Promise<void> {
    const { kube, clock, print } = this.#deps
    if (clock.monotonic() - this.#writtenAtMs < ASK_AGAIN_MS) return
    const annotations = { ...lease.metadata.annotations, [REQUEST_ANNOTATION]: encodeRequest(this.id, clock.now()) }
    try {
      await kube.update(leases, { ...lease, metadata: { ...lease.metadata, annotations } })
    } catch {
      return // the leader has renewed the Lease since the read: the next poll tries again with the newer one
    }
    if (this.#writtenAtMs === -Infinity) print(`uninstall: waiting for the leader to release all ${HELD}`)
    this.#writtenAtMs = clock.monotonic()
  }
}

/** The caller releases the Lease when the whole uninstall has ended: an operator that starts before would add finalizers and Secrets again. */
async function releaseAlone(deps: ReleaseObjectsDeps): Promise<Released> {
  const { kube, lease, config, progress, print } = deps
  print('uninstall: no operator leads; this process holds the Lease')
  const watched = config.watchNamespaces.length === 0 ? [''] : [...new Set([...config.watchNamespaces, ...config.formerNamespaces])]
  const listed: ReleasedKind[] = []
  for (const kind of HELD_KINDS)
    for (const namespace of kind.resource.namespaced ? watched : ['']) listed.push(await listIn(namespace, kind, deps))
  const released = await releaseEvery(listed, { kube }, (counts) => progress.counted(counts))
  try {
    await lease.annotate(NO_REQUEST) // otherwise a new installation would serve the request
  } catch (error) {
    print(`uninstall: the request remains on the Lease (${messageOf(error)}); do not install again within ten minutes`)
  }
  return released
}

async function listIn(namespace: string, kind: HeldKind, { kube, print, progress }: ReleaseObjectsDeps): Promise<ReleasedKind> {
  try {
    const objects = await kube.list(kind.resource, namespace)
    progress.moved()
    return { kind, objects }
  } catch (error) {
    const where = namespace === '' ? 'the cluster' : `namespace ${namespace}`
    print(`uninstall: ${kind.resource.kind}s of ${where} cannot be read: ${messageOf(error)}`)
    return { kind, objects: [] }
  }
}
