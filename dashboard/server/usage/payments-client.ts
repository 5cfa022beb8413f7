/** Asks the payments program inside of the cluster for pages of the payment provider, and how a payment stands. */
import type { z } from 'zod'
import type { OutageLog } from '#platform/outage-log.ts'
import { messageOf } from '#platform/message-of.ts'
import {
  checkoutAnswer,
  type CheckoutRequest,
  receiptAnswer,
  type ReceiptRequest,
  topUpAnswer,
  type TopUpAnswer,
  type TopUpRequest,
} from '../../payments/protocol.ts'
import { notFound, Refused } from '../http/refused.ts'

export interface PaymentsClientDeps {
  /** Base URL of the port for the dashboard. */
  readonly url: string
  readonly token: string
  readonly outage: Pick<OutageLog, 'failed' | 'works'>
}

/** The provider is asked in between, with tries of its own. */
const TIMEOUT_MS = 30_000
const MAX_CHARACTERS = 10_000
const RETRY_SECONDS = 10

const NO_SUCH_AMOUNT = 'The currency has no such amount. Write one such as 25.00.'

export class PaymentsClient {
  readonly #deps: PaymentsClientDeps

  constructor(deps: PaymentsClientDeps) {
    this.#deps = deps
  }

  /** @returns where the person pays @throws Refused */
  async checkout(request: CheckoutRequest): Promise<string> {
    return (await this.#ask('/checkout', request, checkoutAnswer)).url
  }

  /** Credits the payment, if it is paid. @throws Refused; 404 for a payment of another account */
  async topUp(request: TopUpRequest): Promise<TopUpAnswer> {
    return await this.#ask('/top-up', request, topUpAnswer)
  }

  /** @returns where the provider shows the receipt @throws Refused; 404 for a payment of another account, and without a receipt */
  async receipt(request: ReceiptRequest): Promise<string> {
    return (await this.#ask('/receipt', request, receiptAnswer)).url
  }

  async #ask<T>(path: string, request: object, schema: z.ZodType<T>): Promise<T> {
    const { url, token, outage } = this.#deps
    try {
      const response = await fetch(new URL(path, url), {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(request),
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      const body = (await response.text()).slice(0, MAX_CHARACTERS)
      if (response.status === 404) throw notFound()
      if (response.status === 422) throw new Refused('invalid', NO_SUCH_AMOUNT, { fields: { amount: NO_SUCH_AMOUNT } })
      if (!response.ok) throw new Error(`it answers ${response.status}`)
      const read = schema.parse(JSON.parse(body))
      outage.works()
      return read
    } catch (error) {
      if (error instanceof Refused) throw error
      outage.failed(`the payments program cannot be asked: ${messageOf(error)}`)
      throw new Refused(
        'unavailable',
        'Payments are not available now. Nothing was charged, and your keys go on working. Try again in a moment.',
        {
          retryAfter: RETRY_SECONDS,
        },
      )
    }
  }
}
