/** The page of the stand-in, in the browser of a trial. The API is tested where the payments program uses it. */
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { listening } from '../../test/support/listening.ts'
import { EventSender } from './event-sender.ts'
import { StubStripe } from './stub-stripe.ts'

async function started(): Promise<{ stripe: StubStripe; events: string[] }> {
  const events: string[] = []
  const stripe = new StubStripe({
    ...{ key: 'sk_test_1', webhookSecret: 'whsec_1' },
    onEvents: (all) => void events.push(...all.map(({ type }) => type)),
  })
  stripe.url = `http://127.0.0.1:${await listening(stripe.server)}`
  onTestFinished(() => {
    stripe.server.close()
    stripe.server.closeAllConnections()
  })
  return { stripe, events }
}

async function page(stripe: StubStripe): Promise<{ act: (act: string) => Promise<string | null>; html: () => Promise<string> }> {
  const body = new URLSearchParams({
    ...{ 'line_items[0][price_data][currency]': 'eur', 'line_items[0][price_data][unit_amount]': '1000' },
    ...{ success_url: 'http://x.example/paid?{CHECKOUT_SESSION_ID}', cancel_url: 'http://x.example/cancelled' },
  })
  const answer = await fetch(`${stripe.url}/v1/checkout/sessions`, { method: 'POST', headers: { authorization: 'Bearer sk_test_1' }, body })
  const { url } = (await answer.json()) as { url: string }
  return {
    act: async (act) =>
      (await fetch(url, { method: 'POST', body: new URLSearchParams({ act }), redirect: 'manual' })).headers.get('location'),
    html: async () => await (await fetch(url)).text(),
  }
}

test('a person pays and comes back with the id of the session; a bank then refunds and disputes', async () => {
  const { stripe, events } = await started()
  const { act, html } = await page(stripe)
  expect(await html()).toContain('1000 minor units of EUR, open')
  expect(await act('pay')).toMatch(/^http:\/\/x\.example\/paid\?cs_test_/)
  for (const one of ['refund-half', 'dispute', 'win-dispute']) expect(await act(one)).toMatch(/^\/pay\/cs_test_/)
  expect(events).toEqual([
    ...['checkout.session.completed', 'refund.created', 'charge.dispute.created', 'charge.dispute.funds_withdrawn'],
    'charge.dispute.funds_reinstated',
  ])
  expect(await html()).toContain('paid, 1 refunds, 1 disputes')
})

test('a person cancels, and pays later', async () => {
  const { stripe, events } = await started()
  const { act, html } = await page(stripe)
  expect(await act('cancel')).toBe('http://x.example/cancelled')
  expect(events).toEqual([])
  await act('pay-later')
  expect(await html()).toContain('not arrived yet')
  await act('arrive')
  expect(await html()).toContain(', paid.')
})

test('events are sent as often as it is asked for, and forged ones beside them', async () => {
  const { stripe } = await started()
  const received: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const genuine = stripe.signed(JSON.parse(body), { at: Number(/^t=(\d+)/.exec(String(request.headers['stripe-signature']))?.[1]) })
      received.push(genuine.signature === request.headers['stripe-signature'] ? 'genuine' : 'forged')
      response.end()
      if (received.length === 7) resolve()
    })
  })
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const sender = new EventSender({ stripe, url: `http://127.0.0.1:${await listening(server)}`, after: (_ms, send) => send() })
  const { act } = await page(stripe)
  await act('pay')
  const [event] = stripe.state.events
  for (let at = 0; at < 3; at += 1) if (event) sender.send(event)
  await promise
  expect(received.toSorted()).toEqual(['forged', 'forged', 'forged', 'genuine', 'genuine', 'genuine', 'genuine'])
})
