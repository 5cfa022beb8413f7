/** Which gateway processes have died, from heartbeats and pods. Pure but for its memory; times are monotonic ms. */
import type { LiveProcess } from '../projection/store.ts'

/** A process is silent for this long before anything is concluded, ms. */
const SILENT_MS = 30_000
/** The same if nobody knows its pod, or its pod serves still: it may only be cut off. */
const SILENT_UNKNOWN_MS = 120_000
const SILENT_SERVING_MS = 3_600_000
/** What a dead process had spent is remembered for this long, ms. */
const BURIED_AFTER_MS = 7_200_000
/** Then nothing is remembered of it. */
const FORGOTTEN_AFTER_MS = 4 * 3_600_000
/** Names come from what gateways write. */
const MOST_PROCESSES = 50_000

interface Watched {
  readonly pod: string | undefined
  aliveAtMs: number
  isAlive: boolean
  isDead: boolean
}

/** By the name that the ledger knows a process by: that of its heartbeat, or the part behind the pod. */
export class ProcessWatch {
  readonly #processes = new Map<string, Watched>()
  #serving: ReadonlySet<string> = new Set()
  /** Pods with a live process. */
  #livePods: ReadonlySet<string> = new Set()

  /**
   * @param live heartbeats of the last seconds
   * @param serving names of pods that clients can reach
   * @returns whether a process has died since the last call
   */
  observe(live: readonly LiveProcess[], serving: ReadonlySet<string>, nowMs: number): boolean {
    this.#serving = serving
    this.#livePods = new Set(live.map(({ pod }) => pod))
    for (const watched of this.#processes.values()) watched.isAlive = false
    for (const { process, pod } of live) this.#alive(process.startsWith(`${pod}/`) ? process.slice(pod.length + 1) : process, pod, nowMs)
    let hasDied = false
    for (const [process, watched] of this.#processes) {
      if (nowMs - watched.aliveAtMs > FORGOTTEN_AFTER_MS) this.#processes.delete(process)
      const isDead = this.#isDead(watched, nowMs)
      hasDied ||= isDead && !watched.isDead
      watched.isDead = isDead
    }
    return hasDied
  }

  /** The ledger holds something of a process. One that nobody has heard of counts as alive until now. */
  met(process: string, nowMs: number): void {
    const name = nameOf(process)
    if (this.#processes.has(name) || this.#processes.size >= MOST_PROCESSES) return
    const pod = name === process ? undefined : process.slice(0, -name.length - 1)
    this.#processes.set(name, { pod, aliveAtMs: nowMs, isAlive: false, isDead: false })
  }

  /** Its holds count as spent. */
  isDead(process: string, nowMs: number): boolean {
    const watched = this.#processes.get(nameOf(process))
    return watched !== undefined && this.#isDead(watched, nowMs)
  }

  /** It will not come back: one that was cut off for so long takes another name. */
  isGone(process: string, nowMs: number): boolean {
    const watched = this.#processes.get(nameOf(process))
    return watched !== undefined && !watched.isAlive && nowMs - watched.aliveAtMs >= BURIED_AFTER_MS
  }

  #alive(name: string, pod: string, nowMs: number): void {
    const watched = this.#processes.get(name)
    if (watched === undefined || watched.pod !== pod) {
      this.#processes.set(name, { pod, aliveAtMs: nowMs, isAlive: true, isDead: false })
      return
    }
    watched.aliveAtMs = nowMs
    watched.isAlive = true
  }

  /** A pod that serves and has another live process was started again: a pod has one process. */
  #isDead({ pod, aliveAtMs, isAlive }: Watched, nowMs: number): boolean {
    if (isAlive) return false
    const silentMs = nowMs - aliveAtMs
    if (pod === undefined) return silentMs >= SILENT_UNKNOWN_MS
    const isServing = this.#serving.has(pod) && !this.#livePods.has(pod)
    return silentMs >= (isServing ? SILENT_SERVING_MS : SILENT_MS)
  }
}

function nameOf(process: string): string {
  return process.slice(process.lastIndexOf('/') + 1)
}
