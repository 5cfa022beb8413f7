import { expect, test } from 'vitest'
import type { SignedMicros } from '#contract/values/signed-micros.ts'
import { creditCodec, type CreditEntry, readCredit, writeCredit } from './credit-entry.ts'

const TEXT = '{"v":1,"id":"stripe-3f2a","acct":"acme","m":-25000000,"type":"Refund","t":"2026-11-26T10:00:00Z","ref":"re_3QxYz"}'
const entry: CreditEntry = {
  id: 'stripe-3f2a',
  account: 'acme',
  micros: -25_000_000 as SignedMicros,
  type: 'Refund',
  time: '2026-11-26T10:00:00Z',
  reference: 're_3QxYz',
}

test('a Credit in the books is read back byte for byte', () => {
  expect(readCredit(TEXT)).toEqual(entry)
  expect(writeCredit(entry)).toBe(TEXT)
})

test('time and reference may be unknown', () => {
  const bare = { ...entry, time: '', reference: '' }
  expect(readCredit(writeCredit(bare))).toEqual(bare)
  expect(writeCredit(bare)).toBe('{"v":1,"id":"stripe-3f2a","acct":"acme","m":-25000000,"type":"Refund"}')
})

test.each(['1.5', '"25"', '1000000000000000', 'null'])('an amount of %s is damage', (amount) => {
  expect(() => readCredit(`{"v":1,"id":"a","acct":"acme","m":${amount},"type":"TopUp"}`)).toThrow()
})

test('of two entries of one id the stored one counts, byte for byte', () => {
  const other = { ...entry, micros: 1 as SignedMicros }
  expect(creditCodec.merge?.(other, entry)).toBe(entry)
  expect(creditCodec.write(other, TEXT)).toBe(TEXT)
})
