import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hashCredential } from '#contract/values/credential.ts'
import { readKeyringEntry, writeKeyringEntry, type KeyringVerifier } from '#contract/records/keyring-entry.ts'
import { sha256 } from '../../../test/support/hash-keys.ts'
import { entryFor, heldKey, NOW } from '../../../test/support/observed-key.ts'
import { isAliveAt, verifierOfHash, wantedVerifiers, withHash, hashSource } from './hash-source.ts'

/** The owner changes the hash, the overlap, or nothing; time passes. */
const action = fc.record({
  value: fc.integer({ min: 0, max: 5 }),
  overlapSeconds: fc.constantFrom(0, 5, 60, 3_600),
  passMs: fc.integer({ min: 0, max: 100_000 }),
})

test('after any edits and at any time, the value of the manifest works, at most four values work, and none works beyond its promised end', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 30 }), (actions) => {
      let verifiers: readonly KeyringVerifier[] = []
      let now = NOW
      const deadline = new Map<string, number>()
      for (const [index, { value, overlapSeconds, passMs }] of actions.entries()) {
        now += passMs
        const key = heldKey({ source: { type: 'Hash', hash: { sha256: sha256(`sk-${value}`) } }, rotation: { overlapSeconds } })
        const facts = { verifiers, isEdited: true, isDuplicate: false, mayBeUnproven: true, now, isTimeKnown: true }
        const source = hashSource(key)!
        const before = new Set(verifiers.filter((one) => isAliveAt(one, now)).map(({ hash }) => hash))
        const wanted = wantedVerifiers(key, facts)
        verifiers = verifierOfHash(source, wanted) ? wanted : withHash(key, { ...facts, verifiers: wanted }, `id-${index}`)
        for (const { hash } of verifiers)
          if (before.has(hash) && hash !== source.hash)
            deadline.set(hash, Math.min(deadline.get(hash) ?? Infinity, now + overlapSeconds * 1000))
        deadline.delete(hashCredential(`sk-${value}`))
        const alive = verifiers.filter((one) => isAliveAt(one, now))
        expect(alive.length).toBeLessThanOrEqual(4)
        expect(alive.map(({ hash }) => hash)).toContain(hashCredential(`sk-${value}`))
        expect(new Set(alive.map(({ hash }) => hash)).size, 'each value once').toBe(alive.length)
        for (const { hash, expiresMs } of alive) if (hash !== source.hash) expect(expiresMs).toBeLessThanOrEqual(deadline.get(hash) ?? -1)
        expect(
          wantedVerifiers(key, { verifiers, isEdited: false, isDuplicate: false, mayBeUnproven: true, now: now - 1, isTimeKnown: true }),
          'nothing is left to do',
        ).toEqual(verifiers)
      }
    }),
  )
})

test('an entry with any values of both origins reads back as it was written', () => {
  const verifier = fc.record({
    id: fc.stringMatching(/^[0-9A-Za-z]{10}$/),
    hash: fc.string().map(hashCredential),
    expiresMs: fc.option(fc.nat()),
    number: fc.integer({ min: 1, max: 1_000 }),
    state: fc.constantFrom('Minted', 'Issued', 'Voided', 'Revoked'),
    createdMs: fc.nat(),
    prefix: fc.string({ maxLength: 16 }),
  })
  fc.assert(
    fc.property(fc.array(fc.tuple(verifier, fc.constantFrom(undefined, 'Hash', 'Later')), { maxLength: 8 }), (list) => {
      const verifiers = list.map(([one, origin]) => ({ ...one, ...(origin && { origin }) })) as KeyringVerifier[]
      const entry = entryFor(heldKey(), verifiers)
      const again = readKeyringEntry(writeKeyringEntry(entry))
      expect(again.verifiers).toEqual(verifiers)
    }),
  )
})
