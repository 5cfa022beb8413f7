/**
 * Makes the Credits of a payment. Events, the page to which a person comes back, and the sweep call the same function, any number of times and at the
 * same time: the names of the Credits make each count once.
 */
import { formatSignedAmount } from '#contract/values/signed-micros.ts'
import type { Log } from '#platform/log.ts'
import type { CreditBook } from './credit-book.ts'
import { creditsOf, type Decision, type Expected, type WantedCredit } from './credits-of-payment.ts'
import type { Payment } from './payment.ts'
import type { PaymentProvider, ProviderEvent } from './provider.ts'

export interface SettlementDeps {
  readonly provider: PaymentProvider
  readonly book: CreditBook
  readonly expected: Expected
  /** With the field `audit`: the audit log. Never an address. */
  readonly log: Log
  /** A payment that somebody must look at. */
  readonly onAlarm: () => void
}

export class Settlement {
  readonly #deps: SettlementDeps

  constructor(deps: SettlementDeps) {
    this.#deps = deps
  }

  /** @throws if a part does not answer: the same event works later */
  async ofEvent({ about }: ProviderEvent): Promise<Decision['kind']> {
    const { provider } = this.#deps
    if (about === undefined) return 'foreign'
    const payment = 'session' in about ? await provider.bySession(about.session) : await provider.byPayment(about.payment)
    return payment === undefined ? 'foreign' : await this.settle(payment)
  }

  async settle(payment: Payment): Promise<Decision['kind']> {
    const decision = creditsOf(payment, this.#deps.expected)
    if (decision.kind === 'refused') this.#alarm(`a payment was not credited: ${decision.why}`, { session: payment.session.id })
    if (decision.kind === 'credits') for (const credit of decision.credits) await this.#write(credit)
    return decision.kind
  }

  async #write(credit: WantedCredit): Promise<void> {
    const { book, log } = this.#deps
    const { name, account, amount, type, reference } = credit
    const written = await book.write(credit)
    const fields = { credit: name, account: account.name, amount: formatSignedAmount(amount), type, reference }
    if (written === 'created') log.info({ audit: 'credit.create', ...fields }, 'a Credit was created')
    if (written === 'different')
      this.#alarm('a Credit of this name exists, and is another payment; correct the balance by an Adjustment', fields)
  }

  #alarm(why: string, fields: Readonly<Record<string, string>>): void {
    this.#deps.onAlarm()
    this.#deps.log.error({ audit: 'payment.alarm', ...fields }, why)
  }
}
