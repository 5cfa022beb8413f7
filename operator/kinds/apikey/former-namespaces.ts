/** Removes the operator's finalizer in namespaces that are no longer watched. Their keys end as orphans of the keyring. */
import { messageOf } from '#platform/message-of.ts'
import { sleep } from '#platform/clock.ts'
import type { ApiKey } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import type { OperatorContext } from '../kind.ts'
import { releaseAll } from './release.ts'

/** Time after which a namespace is tried again, ms. */
const RETRY_MS = 60_000
const TRIES = 10

/** Releases all ApiKeys of former namespaces, once per leadership. */
export class FormerNamespaces {
  readonly #context: OperatorContext
  readonly #stopping = new AbortController()

  constructor(context: OperatorContext) {
    this.#context = context
  }

  /** Never rejects: a failure is logged with the remedy. */
  async release(): Promise<void> {
    await Promise.all(this.#context.settings.formerNamespaces.map((namespace) => this.#release(namespace)))
  }

  /** Starts no further try. */
  stop(): void {
    this.#stopping.abort()
  }

  async #release(namespace: string): Promise<void> {
    const { kube, log, clock } = this.#context
    for (let tries = 0; tries < TRIES && !this.#stopping.signal.aborted; tries += 1) {
      try {
        const keys = await kube.list(apiKeys, namespace)
        const { released, failed } = await releaseAll(keys, { kube, onReleased: (apiKey) => this.#report(apiKey) })
        if (released > 0) log.info(`${released} ApiKeys of namespace ${namespace}, which is no longer watched, were released`)
        if (failed === 0) return
        log.warn(`${failed} ApiKeys of namespace ${namespace}, which is no longer watched, could not be released; tried again`)
      } catch (error) {
        const reason = messageOf(error)
        log.warn(
          `the ApiKeys of namespace ${namespace}, which is no longer watched, cannot be released (${reason}); name it in scope.formerNamespaces`,
        )
      }
      await sleep(clock, RETRY_MS, this.#stopping.signal)
    }
  }

  #report(apiKey: ApiKey): void {
    this.#context.recordEvent(apiKey, 'Released', 'The namespace is no longer watched: the key is revoked and its finalizer removed.')
  }
}
