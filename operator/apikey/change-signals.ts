/**
 * Tells a reconcile under way that its object has changed. One object is reconciled by one worker at a time, so a worker that waits for
 * gateways would hold up the next change – a revocation, say – of the same key.
 */
import { type ObjectRef, refKey } from '../kube/port.ts'

/** One signal per object that is being reconciled. */
export class ChangeSignals {
  readonly #current = new Map<string, AbortController>()

  /** @returns a signal that aborts at the first change after this call */
  since(ref: ObjectRef): AbortSignal {
    const controller = new AbortController()
    this.#current.set(refKey(ref), controller)
    return controller.signal
  }

  /** The object has changed: whoever waits for something about it stops waiting. */
  changed(ref: ObjectRef): void {
    const key = refKey(ref)
    this.#current.get(key)?.abort()
    this.#current.delete(key)
  }

  /** The reconcile has ended. */
  done(ref: ObjectRef): void {
    this.#current.delete(refKey(ref))
  }
}
