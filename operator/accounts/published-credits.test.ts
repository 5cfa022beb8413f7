import { describe, expect, test } from 'vitest'
import { PublishedCredits } from './published-credits.ts'

// each test goes on where the one before ended
describe('a Credit', { shuffle: false }, () => {
  const booked: string[] = []
  const published = new PublishedCredits({
    get count() {
      return booked.length
    },
    orderOf: (id) => (booked.includes(id) ? booked.indexOf(id) : undefined),
  })

  test('is published once a record that was made later is in the store, although the books have further Credits by then', () => {
    booked.push('pay-1')
    published.made('uid-acme')
    booked.push('pay-2')
    expect(published.has('uid-acme', 'pay-1'), 'on its way').toBe(false)
    published.stored('uid-acme')
    expect([published.has('uid-acme', 'pay-1'), published.has('uid-acme', 'pay-2')]).toEqual([true, false])
  })

  test('is not published by the record of another account, nor before it is in the books', () => {
    expect([published.has('uid-globex', 'pay-1'), published.has('uid-acme', 'pay-3')]).toEqual([false, false])
  })

  test('stays published while the next record is on its way, until its account is deleted', () => {
    published.made('uid-acme')
    expect([published.has('uid-acme', 'pay-1'), published.has('uid-acme', 'pay-2')]).toEqual([true, false])
    published.forget('uid-acme')
    expect(published.has('uid-acme', 'pay-1')).toBe(false)
  })
})
