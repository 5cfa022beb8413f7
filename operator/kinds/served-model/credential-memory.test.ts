import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import type { CredentialRead } from './backend-credential.ts'
import { CredentialMemory } from './credential-memory.ts'

const REF = { namespace: 'shop', name: 'upstream', key: 'token' }
const MINUTE = 60_000
const found = (value: string, hosts: string[] = []): CredentialRead => ({
  state: 'Found',
  value,
  sum: `sum-${value}`,
  origins: new Set(hosts),
})
const missing: CredentialRead = { state: 'NotFound', problem: 'it does not exist' }
const unreadable: CredentialRead = { state: 'Unreadable', problem: '403' }

describe('CredentialMemory', () => {
  let clock: ManualClock
  let memory: CredentialMemory
  beforeEach(() => {
    clock = new ManualClock()
    memory = new CredentialMemory({ clock, random: () => 0.5 })
  })

  test('a credential that was never read is due at once', () => {
    expect(memory.observe(REF)).toEqual({ state: 'Unread' })
    expect(memory.readInMs(REF)).toBe(0)
  })

  test.each<[CredentialRead, number]>([
    [found('a'), 10 * MINUTE],
    [missing, 10_000],
    [unreadable, 10_000],
  ])('a credential whose read gave %o is read again after %i ms', (read, ms) => {
    memory.store(REF, read)
    expect(memory.readInMs(REF)).toBe(ms)
  })

  test('reads of many Secrets are spread over a tenth of the interval to both sides', () => {
    const waits = [0, 0.999].map((random) => {
      const one = new CredentialMemory({ clock, random: () => random })
      one.store(REF, found('a'))
      return one.readInMs(REF)
    })
    expect(waits).toEqual([9 * MINUTE, expect.closeTo(11 * MINUTE, -4)])
  })

  test('an edit of a model makes a read due at once, and the credential stays in use until then', () => {
    memory.store(REF, found('a'))
    memory.expire(REF)
    expect(memory.readInMs(REF)).toBe(0)
    expect(memory.observe(REF)).toMatchObject({ state: 'Found', sum: 'sum-a' })
  })

  test('only a new value, new hosts and the end of a credential count as changes', () => {
    expect(memory.store(REF, found('a'))).toBe(true)
    expect(memory.store(REF, found('a'))).toBe(false)
    expect(memory.store(REF, found('a', ['https://x.example']))).toBe(true)
    expect(memory.store(REF, found('b', ['https://x.example']))).toBe(true)
    expect(memory.store(REF, missing)).toBe(true)
    expect(memory.store(REF, missing)).toBe(false)
  })

  test('after a rotation the former credential stays valid for 10 minutes', async () => {
    memory.store(REF, found('a'))
    memory.store(REF, found('b'))
    expect(memory.observe(REF)).toMatchObject({ sum: 'sum-b', former: 'sum-a' })
    expect(memory.formerEndsInMs(REF)).toBe(10 * MINUTE)
    await clock.advance(5 * MINUTE)
    memory.store(REF, found('b'))
    expect(memory.observe(REF)).toMatchObject({ sum: 'sum-b', former: 'sum-a' })
    await clock.advance(5 * MINUTE)
    expect(memory.observe(REF)).not.toHaveProperty('former')
    expect(memory.formerEndsInMs(REF)).toBeUndefined()
  })

  test('a Secret that becomes unreadable stays in use as last read', () => {
    memory.store(REF, found('a'))
    memory.store(REF, unreadable)
    expect(memory.observe(REF)).toMatchObject({ state: 'Found', sum: 'sum-a', unreadable: '403' })
    expect(memory.valueOf(REF)).toBe('a')
    memory.store(REF, found('a'))
    expect(memory.observe(REF)).not.toHaveProperty('unreadable')
  })

  test('a Secret that was deleted or lost its label is out of use at once, even if later reads fail', () => {
    memory.store(REF, found('a'))
    memory.store(REF, missing)
    expect(memory.observe(REF)).toEqual(missing)
    memory.store(REF, unreadable)
    expect(memory.observe(REF)).toEqual(unreadable)
    expect(memory.valueOf(REF)).toBeUndefined()
  })

  test('a credential without users is forgotten', () => {
    memory.store(REF, found('a'))
    memory.forget(REF)
    expect(memory.observe(REF)).toEqual({ state: 'Unread' })
    expect(memory.valueOf(REF)).toBeUndefined()
  })
})
