/**
 * The leader's part of an uninstall: stops the operator, releases every ApiKey, and writes the result to the Lease. The command and the leader
 * send their messages as annotations of the Lease.
 */
import { messageOf } from '#platform/message-of.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Operator } from '../app.ts'
import type { Released } from '../kinds/release.ts'
import type { LeaderLease } from '#kube/leader.ts'

/** Set by the command: `<id> <ms since 1970>`. */
export const REQUEST_ANNOTATION = 'headgate.dev/uninstall'
/** Set by the leader when it has released every ApiKey: `<id> <released> <failed>`. */
export const RESULT_ANNOTATION = 'headgate.dev/uninstalled'
/** Longest age of a request, ms. An older request is of an abandoned uninstall; the clocks of two machines may differ by minutes. */
const VALID_FOR_MS = 600_000

type Annotations = Readonly<Record<string, string>>

export function encodeRequest(id: string, atMs: number): string {
  return `${id} ${atMs}`
}

/** @returns the id of the request; undefined if there is no request, or if it is too old */
export function readRequest(annotations: Annotations, nowMs: number): string | undefined {
  const [id = '', atMs = ''] = annotations[REQUEST_ANNOTATION]?.split(' ') ?? []
  return id !== '' && Math.abs(nowMs - Number(atMs)) < VALID_FOR_MS ? id : undefined
}

export function encodeResult(id: string, { released, failed }: Released): string {
  return `${id} ${released} ${failed}`
}

/** @returns the result of this request; undefined until the leader has written it */
export function readResult(annotations: Annotations, requestID: string): Released | undefined {
  const [id, released, failed] = annotations[RESULT_ANNOTATION]?.split(' ') ?? []
  return id === requestID ? { released: Number(released), failed: Number(failed) } : undefined
}

export interface UninstallListenerDeps {
  readonly lease: Pick<LeaderLease, 'onAnnotations' | 'annotate'>
  readonly operator: Pick<Operator, 'release'>
  readonly clock: Clock
  readonly log: Log
}

/** Serves the requests that this leader finds on the Lease. */
export function serveUninstalls(deps: UninstallListenerDeps): void {
  const { lease, clock, log } = deps
  let isServing = false
  lease.onAnnotations((annotations) => {
    const id = readRequest(annotations, clock.now())
    if (id !== undefined && readResult(annotations, id) === undefined && !isServing) {
      isServing = true
      void serve(id, deps).finally(() => (isServing = false))
    }
    const isStale = id === undefined && annotations[REQUEST_ANNOTATION] !== undefined
    if (isStale)
      lease.annotate({ [REQUEST_ANNOTATION]: null, [RESULT_ANNOTATION]: null }).catch((error: unknown) => log.warn(messageOf(error)))
  })
}

async function serve(id: string, { operator, lease, log }: UninstallListenerDeps): Promise<void> {
  log.info('Headgate is being uninstalled: this operator stops and releases every ApiKey')
  try {
    const { released, failed } = await operator.release()
    log.info({ released, failed }, 'ApiKeys were released')
    await lease.annotate({ [RESULT_ANNOTATION]: encodeResult(id, { released, failed }) })
  } catch (error) {
    log.error(`the uninstall was not finished (${messageOf(error)})`)
  }
}
