import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'

/** The store that all processes share for limits. */
export interface LedgerStore {
  /** One atomic step. It also settles after a late answer. @throws Error if the store does not answer, or refuses */
  call(call: LedgerCall): Promise<LedgerReply>
  ping(): Promise<void>
}

/** An error reply: the store works and refuses this call. Calls about other subjects may succeed. */
export class LedgerCallRefused extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'LedgerCallRefused'
  }
}
