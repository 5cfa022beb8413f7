/** The messages between the bench and its probe process, as JSON over the IPC channel of `fork`. */

/** From the bench. */
export type ProbeRequest =
  /** The first message: the API server to write to, and the gateways to ask. */
  | { readonly do: 'open'; readonly server: string; readonly labDir: string; readonly gateways: readonly string[] }
  /** Makes one change of a working key, and waits until every gateway refuses it. */
  | { readonly do: 'probe'; readonly id: number; readonly path: string; readonly credential: string; readonly change: ProbeChange }
  /** Asks every gateway once more about every key of this process, and ends. */
  | { readonly do: 'close' }

/** The change that ends a key. */
export type ProbeChange = 'suspend' | 'delete'

/** From the probe process. */
export type ProbeReply =
  | ({ readonly reply: 'probe'; readonly id: number } & Probe)
  | { readonly reply: 'failed'; readonly id: number; readonly why: string }
  | ({ readonly reply: 'closed' } & ProbeSummary)

/** One measured change. */
export interface Probe {
  readonly change: ProbeChange
  /** From the API server's answer to the write until the slowest gateway refused, ms; null if the refusal took longer than the deadline. */
  readonly ms: number | null
  /** How long the API server took for the write, ms. */
  readonly writeMs: number
}

/** The quality of the measurement. */
export interface ProbeSummary {
  /** Most probes that waited at the same time. */
  readonly mostWaiting: number
  /** Time between two questions about the same waiting key to the same gateway, p99, ms. */
  readonly resolutionMs: number
  /** Questions to all gateways together. */
  readonly questions: number
  /** Ended keys that a gateway admitted again at the end. */
  readonly admittedAgain: number
}

/** A probe that is not refused within this time counts as never refused, ms. */
export const PROBE_DEADLINE_MS = 150_000
