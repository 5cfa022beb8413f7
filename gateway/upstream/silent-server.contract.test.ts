/** Large bodies of calls that wait for a server which does not answer. */
import { createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { listening } from '../../test/support/listening.ts'
import { CHAT, Harness, HELLO, json, type Reply, startBackend, until } from '../../test/support/upstream-harness.ts'
import { BodyBudget, bodyLimits } from '../http/body-budget.ts'

const BODY_BYTES = 400_000
const LARGE = { ...HELLO, padding: 'x'.repeat(BODY_BYTES) }

/** Sends a large call. @returns the bytes that its body holds */
async function sendLarge(gateway: Harness): Promise<{ bodies: BodyBudget; answer: Promise<number> }> {
  const bodies = new BodyBudget(bodyLimits(2 ** 30))
  const before = gateway.exchanges.length
  const answer = gateway.post(CHAT, LARGE).then(({ status }) => status)
  await until(() => gateway.exchanges.length > before)
  const exchange = gateway.exchanges[before]
  if (exchange === undefined) throw new Error('no exchange')
  exchange.bodyHold = bodies.open({ tenant: 'shop', key: 'key' })
  exchange.bodyHold.take(BODY_BYTES)
  return { bodies, answer }
}

it('a large body that was sent is dropped after some seconds of silence, and the call is not sent to another server', async () => {
  const replies: Reply[] = [(response) => void silent.push(() => response.destroy()), json(200, { model: 'llama' })]
  const silent: (() => void)[] = []
  const [first, second] = [await startBackend(replies[0] as Reply), await startBackend(replies[1] as Reply)]
  const gateway = await new Harness().start()
  gateway.serve([first.address, second.address])
  const { bodies, answer } = await sendLarge(gateway)
  await until(() => bodies.bytes === 0)
  silent[0]?.()
  expect([await answer, second.received.length]).toEqual([502, 0])
  expect(first.received[0]?.body.length).toBeGreaterThan(BODY_BYTES)
})

it('a large body goes to another server if the first one breaks off at once', async () => {
  const [first, second] = [await startBackend((response) => response.destroy()), await startBackend(json(200, { model: 'llama' }))]
  const gateway = await new Harness({ tickMs: 1_000 }).start()
  gateway.serve([first.address, second.address])
  expect(await (await sendLarge(gateway)).answer).toBe(200)
  expect(second.received[0]?.body).toEqual(first.received[0]?.body)
})

it('a body that the server does not read stays booked, since it stays in memory', async () => {
  const sockets: Socket[] = []
  const server = createServer((socket) => void sockets.push(socket.pause()))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const gateway = await new Harness().start()
  gateway.serve([`127.0.0.1:${await listening(server)}`], { timeouts: { firstByteSeconds: 60, idleSeconds: 60, totalSeconds: 60 } })
  const bodies = new BodyBudget(bodyLimits(2 ** 30))
  const text = JSON.stringify({ ...HELLO, padding: 'x'.repeat(24 * 2 ** 20) }) // more than the buffers of the kernel hold
  const answer = gateway.post(CHAT, text)
  await until(() => gateway.exchanges.length === 1)
  const [exchange] = gateway.exchanges
  if (exchange) exchange.bodyHold = bodies.open({ tenant: 'shop', key: 'key' })
  exchange?.bodyHold?.take(text.length)
  const seen: number[] = []
  exchange?.response.prependListener('close', () => seen.push(bodies.bytes))
  expect((await answer).status).toBe(504) // sixty ticks later
  expect(seen).toEqual([text.length])
})
