/**
 * The leader's part of an uninstall: stops the operator, releases every ApiKey, and writes the result to the Lease. The command and the leader
 * send their messages as annotations of the Lease.
 */
import { messageOf } from '#platform/message-of.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Operator } from '../app.ts'
import type { LeaderLease } from '#kube/leader.ts'

/** Set by the command: `<id> <ms since 1970>`. */
export const REQUEST_ANNOTATION = 'headgate.dev/uninstall'
/** Set by the leader when it has released every ApiKey: `<id> <released> <failed>`. */
export const RESULT_ANNOTATION = 'headgate.dev/uninstalled'
/** Longest age of a request, ms. An older request is of an abandoned uninstall; the clocks of two machines may differ by minutes. */
const VALID_FOR_MS = 600_000

export interface UninstallRequest {
  readonly id: string
  readonly atMs: number
}

export interface UninstallResult {
  readonly id: string
  readonly released: number
  readonly failed: number
}

export function encodeRequest({ id, atMs }: UninstallRequest): string {
  return `${id} ${atMs}`
}

/** @returns undefined if there is no request, or if the request is too old */
export function readRequest(annotations: Readonly<Record<string, string>>, nowMs: number): UninstallRequest | undefined {
  const [id = '', at = ''] = annotations[REQUEST_ANNOTATION]?.split(' ') ?? []
  const atMs = Number(at)
  const isRecent = id !== '' && Number.isFinite(atMs) && Math.abs(nowMs - atMs) < VALID_FOR_MS
  return isRecent ? { id, atMs } : undefined
}

export function encodeResult({ id, released, failed }: UninstallResult): string {
  return `${id} ${released} ${failed}`
}

/** @returns the result of this request; undefined until the leader has written it */
export function readResult(annotations: Readonly<Record<string, string>>, requestID: string): UninstallResult | undefined {
  const [id = '', released = '', failed = ''] = annotations[RESULT_ANNOTATION]?.split(' ') ?? []
  return id === requestID ? { id, released: Number(released), failed: Number(failed) } : undefined
}

export interface UninstallListenerDeps {
  readonly lease: Pick<LeaderLease, 'onAnnotations' | 'annotate'>
  readonly operator: Pick<Operator, 'release'>
  readonly clock: Clock
  readonly log: Log
}

export class UninstallListener {
  readonly #deps: UninstallListenerDeps
  #isServing = false

  constructor(deps: UninstallListenerDeps) {
    this.#deps = deps
  }

  start(): void {
    const { lease, clock, log } = this.#deps
    lease.onAnnotations((annotations) => {
      const request = readRequest(annotations, clock.now())
      const isDone = request !== undefined && annotations[RESULT_ANNOTATION]?.startsWith(`${request.id} `) === true
      if (request !== undefined && !isDone && !this.#isServing) void this.#serve(request)
      const isStale = request === undefined && annotations[REQUEST_ANNOTATION] !== undefined
      if (isStale)
        lease.annotate({ [REQUEST_ANNOTATION]: null, [RESULT_ANNOTATION]: null }).catch((error: unknown) => log.warn(messageOf(error)))
    })
  }

  async #serve({ id }: UninstallRequest): Promise<void> {
    const { operator, lease, log } = this.#deps
    this.#isServing = true
    log.info('Headgate is being uninstalled: this operator stops and releases every ApiKey')
    try {
      const { released, failed } = await operator.release()
      log.info({ released, failed }, 'ApiKeys were released')
      await lease.annotate({ [RESULT_ANNOTATION]: encodeResult({ id, released, failed }) })
    } catch (error) {
      log.error(`the uninstall was not finished (${messageOf(error)})`)
    } finally {
      this.#isServing = false
    }
  }
}
