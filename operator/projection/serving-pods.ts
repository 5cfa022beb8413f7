/**
 * Which gateway pods have applied which revision, at one moment. A pod counts if it serves (EndpointSlices of the gateway Service) or has a
 * live heartbeat: a pod that cannot reach the store still serves, so heartbeats alone would prove nothing.
 */
import { type Acknowledgement, MAX_UNREADABLE_RECORDS } from '#contract/records/revision-log.ts'
import type { EndpointSlice } from '#kube/resources.ts'
import type { LiveProcess } from './store.ts'

interface PodState {
  /** Lowest revision that its processes have applied; -1 = none. */
  readonly applied: number
  /** Uids of records that the pod could not read: its revision proves nothing about them. */
  readonly unreadable: ReadonlySet<string>
}

export class ServingPods {
  readonly #pods: ReadonlyMap<string, PodState>
  /** Highest revision that every pod has applied; -1 = none, or no pod. */
  readonly watermark: number
  readonly #unreadable: ReadonlySet<string>

  /** @param epoch identity of the data set that revisions belong to */
  constructor(live: readonly LiveProcess[], slices: Iterable<EndpointSlice>, epoch: string) {
    const processes = Map.groupBy(live, (process) => process.pod)
    // a starting process loads all records before it serves, so no key waits for that process
    const alive = live.filter(({ acknowledgement }) => acknowledgement?.ready !== false).map(({ pod }) => pod)
    const names = [...new Set([...servingNames(slices), ...alive])].sort()
    this.#pods = new Map(names.map((pod) => [pod, stateOf(processes.get(pod) ?? [], epoch)]))
    this.watermark = this.total === 0 ? -1 : Math.min(...[...this.#pods.values()].map(({ applied }) => applied))
    this.#unreadable = new Set([...this.#pods.values()].flatMap(({ unreadable }) => [...unreadable]))
  }

  get total(): number {
    return this.#pods.size
  }

  /** Whether every pod has applied this revision of the record. Without any pod the answer is no. */
  hasApplied(revision: number, uid: string): boolean {
    return this.total > 0 && this.watermark >= revision && !this.#unreadable.has(uid)
  }

  /** Names of the pods that have not applied this revision of the record, sorted. @param uid undefined: of whatever record */
  missing(revision: number, uid?: string): readonly string[] {
    const has = ({ applied, unreadable }: PodState): boolean => applied >= revision && !(uid !== undefined && unreadable.has(uid))
    return [...this.#pods].flatMap(([pod, state]) => (has(state) ? [] : [pod]))
  }

  /** Whether both have the same pods; the applied revisions may differ. */
  hasSamePods(other: ServingPods): boolean {
    return this.total === other.total && [...this.#pods.keys()].every((pod) => other.#pods.has(pod))
  }
}

/** A pod has applied a revision if all its live processes have applied it. */
function stateOf(processes: readonly LiveProcess[], epoch: string): PodState {
  const revisions = processes.map(({ acknowledgement }) => provenRevision(acknowledgement, epoch))
  const unreadable = processes.flatMap(({ acknowledgement }) => acknowledgement?.unreadable ?? [])
  return { applied: processes.length === 0 ? -1 : Math.min(...revisions), unreadable: new Set(unreadable) }
}

/** A full list of unreadable records may omit some records, so such an acknowledgement proves nothing about any record. */
function provenRevision(ack: Acknowledgement | undefined, epoch: string): number {
  return ack?.epoch === epoch && ack.unreadable.length < MAX_UNREADABLE_RECORDS ? ack.revision : -1
}

/** @returns names of the pods that clients can reach; for an endpoint without a pod its address */
export function servingNames(slices: Iterable<EndpointSlice>): string[] {
  return Array.from(slices)
    .flatMap((slice) => slice.endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready !== false || conditions.serving === true)
    .flatMap(({ targetRef, addresses }) => targetRef?.name ?? addresses[0] ?? [])
}
