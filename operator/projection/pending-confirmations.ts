/** Keys whose status does not say Programmed yet, and the health of backends as last reported: what a poll may wake. */
import type { ObjectRef } from '../kube/port.ts'
import type { Confirmation } from './acknowledgements.ts'
import type { LiveProcess } from './store.ts'

/** What a status said when it was written. */
export interface PendingConfirmation {
  readonly rev: number
  readonly uid: string
  readonly ready: number
  readonly total: number
}

/** Remembers who waits without blocking a worker. */
export class PendingConfirmations {
  readonly #waiting = new Map<string, { readonly ref: ObjectRef; readonly pending: PendingConfirmation }>()
  #health = new Map<string, string>()

  /** How many wait. */
  get size(): number {
    return this.#waiting.size
  }

  /** @param pending undefined = settled */
  set(key: string, ref: ObjectRef, pending: PendingConfirmation | undefined): void {
    if (pending) this.#waiting.set(key, { ref, pending })
    else this.#waiting.delete(key)
  }

  /** Refs whose counts differ from what their status says. */
  *changed(confirmationOf: (rev: number, uid: string) => Confirmation): Iterable<ObjectRef> {
    for (const { ref, pending } of this.#waiting.values()) {
      const now = confirmationOf(pending.rev, pending.uid)
      if (now.ready !== pending.ready || now.total !== pending.total) yield ref
    }
  }

  /** Uids of models for which a gateway reports another health than at the last call. */
  changedHealth(live: readonly LiveProcess[]): Set<string> {
    const next = new Map<string, string>()
    for (const [id, seen] of Map.groupBy(live.flatMap(backendsOf), ([backendId]) => backendId)) {
      next.set(
        id,
        seen
          .map(([, { up, total }]) => `${up}/${total}`)
          .sort()
          .join(),
      ) // heartbeats come in any order
    }
    const changed = new Set<string>()
    for (const id of [...next.keys(), ...this.#health.keys()]) if (next.get(id) !== this.#health.get(id)) changed.add(modelUid(id))
    this.#health = next
    return changed
  }
}

function backendsOf({ acknowledgement }: LiveProcess): Array<[string, { up: number; total: number }]> {
  return Object.entries(acknowledgement?.backends ?? {})
}

/** Heartbeats name a backend `<model uid>/<backend name>`. */
function modelUid(backendId: string): string {
  return backendId.slice(0, backendId.lastIndexOf('/'))
}
