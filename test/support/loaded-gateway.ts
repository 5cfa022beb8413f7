/** A gateway process with clients that reserve from one prepaid account and settle, as fast as a real Redis answers. */
import { setImmediate as turn } from 'node:timers/promises'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import { halvesOf } from '#contract/values/signed-micros.ts'
import { systemClock } from '#platform/clock.ts'
import { LeaseLedger } from '../../gateway/limits/lease-ledger.ts'
import type { LedgerStore, LimitSubject, Verdict } from '../../gateway/limits/ledger.ts'
import { need, subject, usage } from './ledger-world.ts'
import type { SeededRandom } from './seeded-random.ts'

/** Refusals that are kept. */
const MAX_REFUSALS = 100

/** What a request of a client costs and holds, micro-units. */
export interface LoadedRequest {
  readonly hold: number
  readonly cost: number
}

export interface LoadedGatewayDeps {
  readonly name: string
  readonly store: LedgerStore
  /** Number of gateways. */
  readonly live: number
  readonly random: SeededRandom
}

export class LoadedGateway {
  readonly name: string
  readonly ledger: LeaseLedger
  /** Micro-units. */
  settled = 0
  requests = 0
  /** The first ones. */
  readonly refusals: Verdict[] = []
  /** Errors of the ledger's store. */
  readonly errors: Error[] = []
  readonly #random: SeededRandom
  /** Number of answers since each period is known, by period. */
  readonly #answers = new Map<number, number>()

  constructor({ name, store, live, random }: LoadedGatewayDeps) {
    this.name = name
    this.#random = random
    const watched: LedgerStore = { call: (call) => this.#call(store, call), ping: () => store.ping() }
    const onRefused = (error: Error): void => void this.errors.push(error)
    this.ledger = new LeaseLedger({ store: watched, clock: systemClock, process: name, live: () => live, waitMs: 30_000, onRefused })
  }

  /** Whether the store knows all that this process has settled into earlier periods: a report has left since it knows this one. */
  hasReportedBefore(period: number): boolean {
    return [...this.#answers].some(([known, count]) => known >= period && count >= 2)
  }

  /** Runs requests one after another until `isOver`. @param request what the next one costs */
  async client(account: () => LimitSubject, request: (random: SeededRandom) => LoadedRequest, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const { hold, cost } = request(this.#random)
      const verdict = await this.ledger.reserve([account()], need({ holdByUnit: { Currency: hold, Tokens: 0 } }))
      await turn()
      if (verdict.outcome !== 'held') {
        if (this.refusals.length < MAX_REFUSALS) this.refusals.push(verdict)
        continue
      }
      this.requests += 1
      this.settled += cost
      this.ledger.settle(verdict, usage({ costMicros: cost }))
    }
  }

  async #call(store: LedgerStore, call: LedgerCall): Promise<LedgerReply> {
    const reply = await store.call(call)
    const period = 'balance' in reply ? reply.balance?.period : undefined
    if (period !== undefined) this.#answers.set(period, (this.#answers.get(period) ?? 0) + 1)
    return reply
  }
}

/** The account as gateways know it from its record. @param ledger its name in the ledger @param credits sum, micro-units */
export function prepaid(ledger: string, credits: bigint): LimitSubject {
  return subject({ uid: ledger, whose: 'account', balance: { credits: halvesOf(credits) } })
}
