import { createServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { ManualClock, settle } from '../test/support/manual-clock.ts'
import { connectByTcp, NOT_TRIED, ServerProbe } from './server-probe.ts'

const URL_A = 'http://10.0.0.1:8000/base'
const URL_B = 'https://models.example'

/** A probe and its tries. */
function probing(answers: Record<string, string | undefined>) {
  const clock = new ManualClock()
  const tried: string[] = []
  let changes = 0
  const probe = new ServerProbe({
    clock,
    connect: (url) => {
      tried.push(url)
      return Promise.resolve(answers[url])
    },
    onChange: () => (changes += 1),
  })
  return { clock, tried, probe, changes: () => changes }
}

describe('the answer of a server', () => {
  test('is tried once if the server answers, and otherwise every two seconds until it answers', async () => {
    const answers: Record<string, string | undefined> = { [URL_A]: 'ECONNREFUSED' }
    const { clock, tried, probe, changes } = probing(answers)
    probe.follow([URL_A, URL_B])
    expect(probe.failureOf(URL_A)).toBe(NOT_TRIED)
    await clock.advance(10_000)
    expect([probe.failureOf(URL_A), probe.failureOf(URL_B)]).toEqual(['ECONNREFUSED', undefined])
    expect(tried.filter((one) => one === URL_B)).toHaveLength(1)
    expect(tried.filter((one) => one === URL_A).length).toBeGreaterThan(3)
    expect(changes(), 'one for each server: a repeated failure is not reported').toBe(2)
    answers[URL_A] = undefined
    await clock.advance(3_000)
    expect(probe.failureOf(URL_A)).toBeUndefined()
    expect(changes()).toBe(3)
    expect(clock.pending).toBe(0)
  })

  test('is no longer tried for a server of no model', async () => {
    const { clock, tried, probe } = probing({ [URL_A]: 'ECONNREFUSED' })
    probe.follow([URL_A])
    await settle()
    probe.follow([])
    expect(tried).toHaveLength(1)
    await clock.advance(10_000)
    expect(tried).toHaveLength(1)
  })

  test('is never tried at an address that a gateway may not call', async () => {
    for (const url of ['http://169.254.169.254', 'http://metadata.google.internal', 'nonsense'])
      expect(await connectByTcp(url)).toBeUndefined()
  })

  test('is the result of a real connection', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address ? address.port : 0
    expect(await connectByTcp(`http://127.0.0.1:${port}`)).toBeUndefined()
    expect(await connectByTcp(`http://localhost:${port}/base`)).toBeUndefined()
    await new Promise((resolve) => server.close(resolve))
    expect(await connectByTcp(`http://127.0.0.1:${port}`)).toBe('nothing listens there (ECONNREFUSED)')
  })
})
