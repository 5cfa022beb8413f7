import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { listening } from '../../../test/support/listening.ts'
import { inTurns } from './turns.ts'

/** A server whose forms take a while of the process, as SQLite does. */
async function served(formMs: number): Promise<{ readonly url: string; readonly begun: string[] }> {
  const begun: string[] = []
  const app = inTurns(
    (incoming, response) => {
      begun.push(`${incoming.method} ${incoming.url}`)
      const until = performance.now() + (incoming.method === 'POST' ? formMs : 0)
      while (performance.now() < until);
      response.end()
    },
    () => performance.now(),
  )
  const server = createServer(app)
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${await listening(server)}`, begun }
}

async function sent(url: string, method: string): Promise<void> {
  const outgoing = request(url, { method, agent: false })
  outgoing.end()
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
  answer.resume()
  await once(answer, 'end')
}

test('a page that comes after a hundred forms is answered before most of them, and each form is answered', async () => {
  const { url, begun } = await served(5)
  const forms = Array.from({ length: 100 }, (_, n) => sent(`${url}/sign-up?${n}`, 'POST'))
  await sent(`${url}/sign-in`, 'GET')
  expect(begun.indexOf('GET /sign-in')).toBeLessThan(50)
  await Promise.all(forms)
  expect(begun.length).toBe(101)
})

test('forms begin in the order in which they came, and calls of signed-in people wait for none of them', async () => {
  const { url, begun } = await served(1)
  const forms: Promise<void>[] = []
  for (let n = 0; n < 5; n += 1) forms.push(sent(`${url}/sign-up?${n}`, 'POST'))
  forms.push(sent(`${url}/api/name`, 'POST'))
  await Promise.all(forms)
  const order = begun.filter((one) => one.includes('sign-up'))
  expect(order.toSorted()).toEqual(Array.from({ length: 5 }, (_, n) => `POST /sign-up?${n}`))
  expect(begun).toContain('POST /api/name')
})
