import { PERMIT_LIFE_MS } from '#contract/ledger/ledger-layout.ts'
import type { PermitReply, PermitRequest } from '#contract/ledger/ledger-call.ts'

/** Permits of one subject, by process. A process that reports nothing for 15 s has none. */
export class MemoryPermits {
  readonly #processes = new Map<string, { held: number; expiresMs: number }>()

  /** Counts the permits of a process, and drops silent processes. */
  report(process: string, held: number, nowMs: number): void {
    for (const [other, { expiresMs }] of this.#processes) {
      const isOver = expiresMs < nowMs || expiresMs > nowMs + PERMIT_LIFE_MS // the second: the clock went back
      if (isOver) this.#processes.delete(other)
    }
    this.#set(process, held, nowMs)
  }

  free(limit: number): number {
    let sum = 0
    for (const { held } of this.#processes.values()) sum += held
    return limit - sum
  }

  /**
   * Grants permits, or nothing if anything in the call is short.
   * @param live processes that share the limit
   */
  grant(process: string, request: PermitRequest, isShort: boolean, when: { readonly live: number; readonly nowMs: number }): PermitReply {
    const free = this.free(request.limit)
    const grant = isShort ? 0 : permitGrant(request, free, when.live)
    if (grant > 0) this.#set(process, request.held + grant, when.nowMs)
    return { grant, rest: free - grant, waitMs: isPermitShort(request, free) ? PERMIT_WAIT_MS : 0 }
  }

  #set(process: string, held: number, nowMs: number): void {
    if (held > 0) this.#processes.set(process, { held, expiresMs: nowMs + PERMIT_LIFE_MS })
    else this.#processes.delete(process)
  }
}

/** Retry time, because the end of a running request cannot be predicted. */
const PERMIT_WAIT_MS = 1_000
/** Below this many permits per process, a process keeps no idle permit. */
const IDLE_FROM_PER_PROCESS = 8

/** Whether `need` does not fit. */
export function isPermitShort({ need }: PermitRequest, free: number): boolean {
  return need > 0 && free < need
}

function permitGrant({ limit, need, ask, want }: PermitRequest, free: number, live: number): number {
  const granted = Math.min(free, Math.max(need, ask))
  if (granted < 0) return 0
  const isIdleAllowed = limit >= IDLE_FROM_PER_PROCESS * live && 2 * (free - granted) >= limit
  return granted + (isIdleAllowed ? Math.min(want, Math.floor((free - granted) / (2 * live))) : 0)
}
