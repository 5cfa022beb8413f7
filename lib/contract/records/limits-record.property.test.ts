import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hashCredential } from '../values/credential.ts'
import { decodeKeyRecord, encodeKeyRecord, type KeyRecord } from './key-record.ts'
import { readKeyringEntry, writeKeyringEntry } from './keyring-entry.ts'
import { type BudgetRecord, type LimitedRecord, MAX_AMOUNT } from './limits-record.ts'
import { decodeModelRecord, encodeModelRecord, type ModelRecord } from './model-record.ts'

const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined })
const amount = fc.nat({ max: MAX_AMOUNT })
/** Numbers up to the bound of the field in manifests. */
const upTo = (max: number) => optional(fc.integer({ min: 1, max }))
const count = fc.integer({ min: 1, max: 1_000_000 })
const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$/)
const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/Argentina/Buenos_Aires', 'Etc/GMT+12')

const budget: fc.Arbitrary<BudgetRecord> = fc.record({
  name,
  unit: fc.constantFrom('Currency', 'Tokens'),
  amount,
  window: fc.constantFrom('Lifetime', 'Day', 'Week', 'Month'),
  timeZone: zone,
  onExceeded: fc.constantFrom('Block', 'Audit'),
})

const limited: fc.Arbitrary<LimitedRecord> = fc.record({
  limits: optional(
    fc.record({ requestsPerMinute: upTo(1_000_000_000), tokensPerMinute: upTo(1_000_000_000_000), maxConcurrentRequests: upTo(1_000_000) }),
  ),
  budgets: optional(fc.array(budget, { minLength: 1, maxLength: 4 })),
  onStoreUnavailable: optional(fc.constantFrom('FailClosed', 'LocalShare')),
})

const key: fc.Arbitrary<KeyRecord> = fc
  .tuple(limited, fc.constantFrom('Active' as const, 'Suspended' as const, 'Revoked' as const))
  .map(([limits, state]) => ({
    ...{ version: 1, revision: 7, uid: 'u', namespace: 'shop', name: 'bot', expiresMs: null, generation: 1, models: [['*']] },
    ...{ ...limits, state, verifiers: [{ id: 'a', hash: hashCredential('x'), expiresMs: null }] },
  }))

const backend = {
  name: 'a',
  endpoints: [],
  service: 's:1',
  url: null,
  upstreamModel: 'm',
  weight: 1,
  routes: ['messages'],
  engine: 'LlamaCpp',
} as const
const timeouts = { firstByteSeconds: 1, idleSeconds: 1, totalSeconds: 1 }
const model: fc.Arbitrary<ModelRecord> = fc
  .record({
    pricing: optional(
      fc.record({
        ...{ inputPerMillion: amount, outputPerMillion: amount, cachedInputPerMillion: amount },
        ...{ cacheWritePerMillion: optional(amount), perRequest: optional(amount) },
      }),
    ),
    contextTokens: optional(count),
    maxOutputTokens: optional(count),
    streamUsage: fc.constantFrom('Inject' as const, 'Native' as const, 'Estimate' as const),
  })
  .map(({ streamUsage, ...rest }) => ({
    ...{ version: 1, revision: 7, uid: 'm', namespace: 'shop', name: 'llama', createdMs: 0, servedName: 'llama', aliases: [], timeouts },
    ...{ allowedNamespaces: '*', ...rest, backends: [{ ...backend, streamUsage, credentialSum: null, formerCredentialSum: null }] },
  }))

test('any limits and budgets of a key survive being written and read, to the last micro-unit', () => {
  fc.assert(
    fc.property(key, (record) => {
      expect(decodeKeyRecord(encodeKeyRecord(record))).toEqual(record)
    }),
  )
})

test('any limits survive in the keyring, and a key that is refused never has a need', () => {
  fc.assert(
    fc.property(key, (record) => {
      const rest = { number: 1, state: 'Issued' as const, createdMs: 0, prefix: 'sk' }
      const entry = { ...record, verifiers: record.verifiers.map((verifier) => ({ ...verifier, ...rest })), deletedMs: null }
      const text = writeKeyringEntry(entry)
      expect(readKeyringEntry(text)).toEqual(entry)
      if (record.state !== 'Active') expect(JSON.parse(text)).not.toHaveProperty('needs')
    }),
  )
})

test('any price and bound of a model survives being written and read', () => {
  fc.assert(
    fc.property(model, (record) => {
      expect(decodeModelRecord(encodeModelRecord(record))).toEqual(record)
    }),
  )
})
