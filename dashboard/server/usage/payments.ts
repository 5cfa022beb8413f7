/** How an installation takes money. */
import { formatMicros, type Micros, parseMicros } from '#contract/values/micros.ts'
import { Refused } from '../http/refused.ts'
import type { Billing } from '../page-data/billing.ts'

/** What people may pay at once: decimal text. */
export interface TopUpAmounts {
  /** That the page offers, the smallest first. */
  readonly amounts: readonly string[]
  readonly least: Micros
  readonly most: Micros
}

export type PaymentSettings =
  /** The page says whom to ask. */
  | { readonly provider: 'none' }
  /** An administrator creates the Credits. `command`: the page shows a line that does so, for the person who runs the program. */
  | { readonly provider: 'manual'; readonly command?: (account: string, id: string) => string }
  | ({ readonly provider: 'stripe'; readonly url: string; readonly token: string } & TopUpAmounts)

/**
 * What the page says of payments.
 * @param topUps Credits that the account has: the line for an administrator names the next one, so that to run a line twice adds once
 */
export function paymentsView(settings: PaymentSettings, account: string, topUps: number): Billing['payments'] {
  const { provider } = settings
  if (provider === 'stripe')
    return { provider, amounts: settings.amounts, least: formatMicros(settings.least), most: formatMicros(settings.most) }
  const command = provider === 'manual' ? settings.command?.(account, `top-up-${account}-${topUps + 1}`) : undefined
  return { provider, amounts: [], ...(command === undefined ? {} : { command }) }
}

/** @returns the amount as decimal text @throws Refused for what is not an amount, too little or too much */
export function topUpAmount(text: string, { least, most }: TopUpAmounts, currency: string): string {
  const micros = parseMicros(text.trim())
  if (micros === undefined) throw invalid('Write an amount such as 25.00.')
  if (micros < least || micros > most) throw invalid(`Choose an amount from ${formatMicros(least)} to ${formatMicros(most)} ${currency}.`)
  return formatMicros(micros)
}

function invalid(message: string): Refused {
  return new Refused('invalid', message, { fields: { amount: message } })
}
