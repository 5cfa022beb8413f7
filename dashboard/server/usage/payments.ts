/** How an installation takes money. */
import type { Billing } from '../page-data/billing.ts'

export type PaymentSettings =
  /** `none`: the page says whom to ask. */
  | { readonly provider: 'none' }
  /** An administrator creates the Credits. `command`: the page shows a line that does so, for the person who runs the program. */
  | { readonly provider: 'manual'; readonly command?: (account: string, id: string) => string }
  /** Amounts are decimal text, the smallest first. */
  | { readonly provider: 'stripe'; readonly amounts: readonly string[] }

/**
 * What the page says of payments.
 * @param topUps Credits that the account has: the line for an administrator names the next one, so that to run a line twice adds once
 */
export function paymentsView(settings: PaymentSettings, account: string, topUps: number): Billing['payments'] {
  const { provider } = settings
  if (provider === 'stripe') return { provider, amounts: settings.amounts }
  const command = provider === 'manual' ? settings.command?.(account, `top-up-${account}-${topUps + 1}`) : undefined
  return { provider, amounts: [], ...(command === undefined ? {} : { command }) }
}
