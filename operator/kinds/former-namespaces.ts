/** Removes the operator's finalizers in namespaces that are no longer watched. The keys end there as orphans of the keyring. */
import { messageOf } from '#platform/message-of.ts'
import { sleep } from '#platform/clock.ts'
import type { KubeObject } from '#kube/port.ts'
import type { OperatorContext } from './kind.ts'
import { releaseAll, type ReleasedKind } from './release.ts'

/** Time after which a namespace is tried again, ms. */
const RETRY_MS = 60_000
const TRIES = 10

/** What the release needs from the operator. */
export type FormerNamespacesDeps = Pick<OperatorContext, 'kube' | 'clock' | 'log' | 'settings' | 'recordEvent'>

/** Releases all objects with a finalizer in former namespaces, once per leadership. */
export class FormerNamespaces {
  readonly #kinds: readonly ReleasedKind[]
  readonly #deps: FormerNamespacesDeps
  readonly #stopping = new AbortController()

  /** @param kinds all kinds; those without a finalizer have nothing to release */
  constructor(kinds: readonly ReleasedKind[], deps: FormerNamespacesDeps) {
    this.#kinds = kinds.filter(({ resource, finalizer }) => finalizer !== undefined && resource.namespaced)
    this.#deps = deps
  }

  /** Never rejects: a failure is logged with the remedy. */
  async release(): Promise<void> {
    const { formerNamespaces } = this.#deps.settings
    await Promise.all(this.#kinds.flatMap((kind) => formerNamespaces.map((namespace) => this.#release(kind, namespace))))
  }

  /** Starts no further try. */
  stop(): void {
    this.#stopping.abort()
  }

  async #release(kind: ReleasedKind, namespace: string): Promise<void> {
    const { kube, log, clock } = this.#deps
    const those = `${kind.resource.kind}s of namespace ${namespace}, which is no longer watched,`
    for (let tries = 0; tries < TRIES && !this.#stopping.signal.aborted; tries += 1) {
      try {
        const objects = await kube.list(kind.resource, namespace)
        const { released, failed } = await releaseAll(kind, objects, { kube, onReleased: (object) => this.#report(object) })
        if (released > 0) log.info(`${released} ${those} were released`)
        if (failed === 0) return
        log.warn(`${failed} ${those} could not be released; tried again`)
      } catch (error) {
        log.warn(`the ${those} cannot be released (${messageOf(error)}); name it in scope.formerNamespaces`)
      }
      await sleep(clock, RETRY_MS, this.#stopping.signal)
    }
  }

  #report(object: KubeObject): void {
    this.#deps.recordEvent(object, 'Released', 'The namespace is no longer watched: the key is revoked and its finalizer removed.')
  }
}
