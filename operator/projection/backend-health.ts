import type { LiveProcess } from './store.ts'

/** The health of backends according to the gateways' last heartbeats. */
export class BackendHealth {
  #health = new Map<string, string>()

  /** @returns uids of the models for which a gateway reports another health of a backend than at the last call */
  changed(live: readonly LiveProcess[]): ReadonlySet<string> {
    const next = new Map<string, string>()
    for (const [id, seen] of Map.groupBy(live.flatMap(backendsOf), ([backendId]) => backendId)) {
      const reports = seen.map(([, { up, total }]) => `${up}/${total}`)
      next.set(id, reports.sort().join()) // heartbeats come in any order
    }
    const ids = [...new Set([...next.keys(), ...this.#health.keys()])]
    const changed = new Set(ids.filter((id) => next.get(id) !== this.#health.get(id)).map(modelUid))
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
