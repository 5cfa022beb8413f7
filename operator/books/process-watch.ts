/** Detects dead gateway processes from heartbeats and pods. Pure except for its memory. Times are monotonic ms. */
import type { LiveProcess } from '../projection/store.ts'

/** Shortest silence of a dead process whose pod no longer serves, ms. */
const SILENT_MS = 30_000
/** The same for a process with an unknown pod, and for a process whose pod still serves: the process may only be cut off. */
const SILENT_UNKNOWN_MS = 120_000
const SILENT_SERVING_MS = 3_600_000
/** Silence after which the recorded spend of a process is dropped, ms. */
const BURIED_AFTER_MS = 7_200_000
/** Silence after which the process is forgotten, ms. */
const FORGOTTEN_AFTER_MS = 4 * 3_600_000
/** Maximum number of processes: gateways write the names, so their number must be bounded. */
const MAX_PROCESSES = 50_000

interface Watched {
  readonly pod: string | undefined
  readonly aliveAtMs: number
  isAlive: boolean
  isDead: boolean
}

/** Watches processes by their name in the ledger: the name of the heartbeat, or its part after the pod. */
export class ProcessWatch {
  readonly #processes = new Map<string, Watched>()
  #serving: ReadonlySet<string> = new Set()
  #livePods: ReadonlySet<string> = new Set()

  /** @param serving names of pods that clients can reach @returns whether a process has died since the last call */
  observe(live: readonly LiveProcess[], serving: ReadonlySet<string>, nowMs: number): boolean {
    this.#serving = serving
    this.#livePods = new Set(live.map(({ pod }) => pod))
    for (const watched of this.#processes.values()) watched.isAlive = false
    for (const { process, pod } of live) {
      const name = process.startsWith(`${pod}/`) ? process.slice(pod.length + 1) : process
      this.#processes.set(name, { pod, aliveAtMs: nowMs, isAlive: true, isDead: false })
    }
    let hasDied = false
    for (const [process, watched] of this.#processes) {
      if (nowMs - watched.aliveAtMs > FORGOTTEN_AFTER_MS) this.#processes.delete(process)
      const isDead = this.#isDead(watched, nowMs)
      hasDied ||= isDead && !watched.isDead
      watched.isDead = isDead
    }
    return hasDied
  }

  /** Called when the ledger has holds or spend of a process. An unknown process counts as alive until now. */
  met(process: string, nowMs: number): void {
    const name = nameOf(process)
    if (this.#processes.has(name) || this.#processes.size >= MAX_PROCESSES) return
    const pod = name === process ? undefined : process.slice(0, -name.length - 1)
    this.#processes.set(name, { pod, aliveAtMs: nowMs, isAlive: false, isDead: false })
  }

  /** Whether a process is dead, so that its holds count as spent. */
  isDead(process: string, nowMs: number): boolean {
    const watched = this.#processes.get(nameOf(process))
    return watched !== undefined && this.#isDead(watched, nowMs)
  }

  /** Whether a process will not return, or would say that it was away. One that is only cut off may still wait for the answer to a report. */
  cannotReturn(process: string, nowMs: number): boolean {
    const watched = this.#processes.get(nameOf(process))
    if (watched === undefined || watched.isAlive || this.#mayBeCutOff(watched)) return false
    return nowMs - watched.aliveAtMs >= BURIED_AFTER_MS
  }

  /** Whether the silence suffices. */
  #isDead(watched: Watched, nowMs: number): boolean {
    if (watched.isAlive) return false
    const silentMs = nowMs - watched.aliveAtMs
    if (watched.pod === undefined) return silentMs >= SILENT_UNKNOWN_MS
    return silentMs >= (this.#mayBeCutOff(watched) ? SILENT_SERVING_MS : SILENT_MS)
  }

  /** A pod has one process, so a serving pod with another live process has restarted. */
  #mayBeCutOff({ pod }: Watched): boolean {
    return pod !== undefined && this.#serving.has(pod) && !this.#livePods.has(pod)
  }
}

function nameOf(process: string): string {
  return process.slice(process.lastIndexOf('/') + 1)
}
