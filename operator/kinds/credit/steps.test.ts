import { describe, expect, test } from 'vitest'
import { parseSignedAmount } from '#contract/values/signed-micros.ts'
import { credit } from '../../../test/support/objects.ts'
import type { CreditEntry } from '../../shards/credit-entry.ts'
import type { Observed } from './observed.ts'
import { statusOf } from './status.ts'
import { nextStep } from './steps.ts'

const NOW = Date.UTC(2026, 0, 14)
const RETRY = { retryInMs: 10_000, isFull: false, message: 'no answer' }

function entry(amount = '25', change: Partial<CreditEntry> = {}): CreditEntry {
  return { id: 'pay-1', account: 'acme', micros: parseSignedAmount(amount)!, type: 'TopUp', time: '', reference: '', ...change }
}

/** A new Credit of an account with books. */
function observed(change: Partial<Observed> = {}): Observed {
  return {
    credit: credit('pay-1', {}, { generation: 1 }),
    wanted: entry(),
    booked: undefined,
    isBooking: false,
    isUnreadable: false,
    books: 'Open',
    refusal: undefined,
    isPublished: true,
    storeAvailable: true,
    now: NOW,
    ...change,
  }
}

/** The same after its status was written. */
function reported(change: Partial<Observed>): Observed {
  const before = observed(change)
  return { ...before, credit: { ...before.credit, status: statusOf(before) } }
}

const booked = (change: Partial<Observed>): string | undefined => statusOf(observed(change)).conditions?.[0]?.reason
const message = (change: Partial<Observed>): string => statusOf(observed(change)).conditions?.[0]?.message ?? ''

describe('a Credit', () => {
  test('is booked first, and money that is taken back is urgent', () => {
    expect(nextStep(observed())).toEqual({ do: 'book', level: 'change' })
    expect(nextStep(observed({ wanted: entry('-0.000001') }))).toEqual({ do: 'book', level: 'urgent' })
  })

  test('waits until the entry is durable, and then until gateways have the sum, before the status says Booked', () => {
    expect(nextStep(observed({ isBooking: true }))).toEqual({ do: 'wait' })
    expect(nextStep(observed({ booked: entry(), isPublished: false }))).toEqual({ do: 'wait' })
    expect(nextStep(observed({ booked: entry() }))).toEqual({ do: 'write-status', level: 'background' })
    expect(booked({ booked: entry() })).toBe('Booked')
    expect(nextStep(reported({ booked: entry() }))).toBeUndefined()
  })

  test('says that it waits while the store of the gateways does not answer', () => {
    const waiting = { booked: entry(), isPublished: false, storeAvailable: false }
    expect([nextStep(observed(waiting))?.do, booked(waiting)]).toEqual(['write-status', 'Pending'])
    expect(nextStep(reported(waiting))).toEqual({ do: 'wait' })
  })

  test('stays Booked while the record of the account changes again, and whatever becomes of the books', () => {
    const { credit: shown } = reported({ booked: entry() })
    expect(nextStep(observed({ credit: shown, booked: entry(), isPublished: false }))).toBeUndefined()
    expect(nextStep(observed({ credit: shown, booked: entry(), books: 'OfAnother' }))).toBeUndefined()
  })

  test('without books of the account is not booked, and waits', () => {
    for (const books of ['Absent', 'OfAnother'] as const) {
      expect([booked({ books }), nextStep(observed({ books }))?.do]).toEqual(['AccountNotFound', 'write-status'])
      expect(nextStep(reported({ books }))).toEqual({ do: 'wait' })
    }
  })

  test('of an Account that is not accepted yet waits, and does not say that there is none', () => {
    expect(booked({ books: 'Unclaimed' })).toBe('Pending')
    expect(message({ books: 'Unclaimed' })).toContain('once the Account acme is accepted')
    expect(nextStep(reported({ books: 'Unclaimed' }))).toEqual({ do: 'wait' })
  })

  test.each([entry('25', { account: 'globex' }), entry('24.999999')])('does not count if its name is of another payment: %j', (other) => {
    expect(booked({ booked: other })).toBe('IdUsed')
    expect(nextStep(reported({ booked: other }))).toBeUndefined()
  })

  test('that differs from its entry in type, time or reference alone is the same payment', () => {
    expect(booked({ booked: entry('25', { type: 'Grant', time: '2026-01-01T00:00:00Z', reference: 'ch_1' }) })).toBe('Booked')
  })

  test('says at once why its entry was refused, and tries again', () => {
    expect(nextStep(observed({ refusal: RETRY }))).toEqual({ do: 'write-status', level: 'background' })
    expect([booked({ refusal: RETRY }), message({ refusal: RETRY })]).toEqual(['Pending', expect.stringContaining('(no answer)')])
    expect(nextStep(reported({ refusal: RETRY }))).toEqual({ do: 'wait', forMs: 10_000 })
    expect(booked({ refusal: { ...RETRY, isFull: true } })).toBe('BooksFull')
  })

  test.each<Partial<Observed>>([{ isUnreadable: true }, { books: 'Unreadable' }])('whose books cannot be read asks again: %j', (change) => {
    expect(booked(change)).toBe('Pending')
    expect(nextStep(reported(change))).toMatchObject({ do: 'wait', forMs: 30_000 })
  })

  test('shows no amount in a message, because Events repeat messages', () => {
    const all: Array<Partial<Observed>> = [
      {},
      { booked: entry() },
      { booked: entry(), isPublished: false },
      { booked: entry('24') },
      { books: 'Absent' },
      { books: 'OfAnother' },
      { books: 'Unreadable' },
      { isUnreadable: true },
      { refusal: RETRY },
    ]
    for (const change of all) expect(message(change)).not.toMatch(/\d/)
  })
})
