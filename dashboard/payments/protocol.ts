/** What the dashboard asks the payments program inside of the cluster, as JSON with a shared token. */
import { z } from 'zod'

const account = z.strictObject({ name: z.string().min(1).max(253), uid: z.string().regex(/^[0-9A-Za-z-]{1,128}$/) })

/** POST /checkout */
export const checkoutRequest = z.strictObject({
  account,
  /** Decimal. */
  amount: z.string().max(17),
  email: z.string().max(254),
  /** Drawn once for each intent to pay: a retry gets the same page. */
  attempt: z.string().regex(/^[0-9A-Za-z_-]{8,64}$/),
})
export type CheckoutRequest = z.output<typeof checkoutRequest>
/** Where the person pays. */
export const checkoutAnswer = z.object({ url: z.url({ protocol: /^https?$/ }).max(4_096) })

/** POST /receipt: where the provider shows the receipt of a payment. 404 for a payment of another account, and without a receipt. */
export const receiptRequest = z.strictObject({ account, payment: z.string().regex(/^pi_[0-9A-Za-z_]{1,250}$/) })
export type ReceiptRequest = z.output<typeof receiptRequest>
export const receiptAnswer = checkoutAnswer

/** POST /top-up: settles a payment and says how it stands. 404 for one of another account. */
export const topUpRequest = z.strictObject({ account, session: z.string().regex(/^cs_[0-9A-Za-z_]{1,250}$/) })
export type TopUpRequest = z.output<typeof topUpRequest>
export const topUpAnswer = z.object({ state: z.enum(['open', 'processing', 'paid', 'failed', 'expired']) })
export type TopUpAnswer = z.output<typeof topUpAnswer>
