/** The page of the stand-in: a person pays there, and a trial plays what a bank does later. Pure. */
import type { StubDispute, StubRefund, StubSession } from './state.ts'

export interface PayPage {
  readonly session: StubSession
  readonly refunds: readonly StubRefund[]
  readonly disputes: readonly StubDispute[]
}

export function payPage(page: PayPage): string {
  const { session } = page
  const buttons = actsOf(page).map(([act, label]) => `<p><button name="act" value="${act}">${label}</button></p>`)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Stand-in for Stripe</title>
<h1>Stand-in for Stripe</h1>
<p>${session.amount_total} minor units of ${escaped(session.currency.toUpperCase())}, ${stateOf(page)}. No money moves.</p>
<form method="post">
${buttons.join('\n')}
</form>
</html>
`
}

function stateOf({ session, refunds, disputes }: PayPage): string {
  const paid = session.status === 'complete' ? (session.payment_status === 'paid' ? 'paid' : 'not arrived yet') : session.status
  const refunded = refunds.length > 0 ? `, ${refunds.length} refunds` : ''
  return `${paid}${refunded}${disputes.length > 0 ? `, ${disputes.length} disputes` : ''}`
}

function actsOf({ session, disputes }: PayPage): readonly (readonly [string, string])[] {
  if (session.status === 'open')
    return [
      ['pay', 'Pay'],
      ['pay-later', 'Pay later, by a bank transfer'],
      ['cancel', 'Cancel'],
    ]
  if (session.payment_intent?.status === 'processing')
    return [
      ['arrive', 'The transfer arrives'],
      ['fail', 'The transfer fails'],
    ]
  if (session.payment_status !== 'paid') return []
  return [
    ['refund', 'Refund all'],
    ['refund-half', 'Refund a half'],
    ['dispute', 'The bank takes the payment back'],
    ...(disputes.length > 0 ? [['win-dispute', 'The last dispute is won'] as const] : []),
  ]
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)
}
