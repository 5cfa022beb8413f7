/** The leader's part of an uninstall: stops the operator, releases every ApiKey, and writes the result to the Lease. */
import { messageOf } from '#platform/message-of.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Operator } from '../app.ts'
import type { LeaderLease } from '#kube/leader.ts'
import { encodeResult, readRequest, REQUEST_ANNOTATION, RESULT_ANNOTATION, type UninstallRequest } from './request.ts'

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
