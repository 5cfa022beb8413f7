import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { ManualClock } from '../test/support/manual-clock.ts'
import { listenOn } from './listen-address.ts'
import { connectionFailure, NOT_TRIED, ServerProbe } from './server-probe.ts'

const [URL_A, URL_B] = ['http://10.0.0.1:8000/base', 'https://models.example']

test('a server is tried once if it answers, otherwise every two seconds until it answers or no model has it', async () => {
  const clock = new ManualClock()
  let failure: string | undefined = 'ECONNREFUSED'
  const tried: string[] = []
  let changes = 0
  const probe = new ServerProbe(
    clock,
    () => (changes += 1),
    async (url) => {
      tried.push(url)
      return url === URL_A ? failure : undefined
    },
  )
  probe.follow([URL_A, URL_B])
  expect(probe.failureOf(URL_A)).toBe(NOT_TRIED)
  await clock.advance(10_000)
  expect([probe.failureOf(URL_A), probe.failureOf(URL_B)]).toEqual(['ECONNREFUSED', undefined])
  expect(tried.filter((one) => one === URL_B)).toHaveLength(1)
  expect(tried.filter((one) => one === URL_A).length).toBeGreaterThan(3)
  expect(changes, 'one for each server: a repeated failure is not reported').toBe(2)
  failure = undefined
  await clock.advance(3_000)
  expect([probe.failureOf(URL_A), changes, clock.pending]).toEqual([undefined, 3, 0])
  failure = 'ECONNREFUSED'
  probe.follow([])
  probe.follow([URL_A])
  probe.follow([])
  await clock.advance(10_000)
  expect(clock.pending).toBe(0)
})

test('an address that a gateway may not call is never tried', async () => {
  for (const url of ['http://169.254.169.254', 'http://metadata.google.internal', 'nonsense'])
    expect(await connectionFailure(url)).toBeUndefined()
})

test('the answer is the result of a real connection', async () => {
  const server = createServer()
  const url = await listenOn(server, '127.0.0.1', 0, { warn: () => undefined })
  expect(await connectionFailure(url)).toBeUndefined()
  expect(await connectionFailure(url.replace('127.0.0.1', 'localhost'))).toBeUndefined()
  await new Promise((resolve) => server.close(resolve))
  expect(await connectionFailure(url)).toBe('nothing listens there (ECONNREFUSED)')
})
