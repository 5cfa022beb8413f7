import fc from 'fast-check'
import { expect, test } from 'vitest'
import { credentialForm, hashCredential, mintCredential } from './credential.ts'

const minted = fc.uint8Array({ minLength: 256, maxLength: 256 }).map((bytes) => {
  let at = 0
  return mintCredential((size) => Uint8Array.from({ length: size }, () => (bytes[at++ % 256] ?? 0) % 248))
})

test('every minted credential is recognised, with its id', () => {
  fc.assert(
    fc.property(minted, ({ credential, id }) => {
      expect(credentialForm(credential)).toEqual({ form: 'own', id })
    }),
  )
})

test('a credential with one wrong character is distinguished from an unknown one without a look-up', () => {
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const position = fc.integer({ min: 6, max: 64 })
  fc.assert(
    fc.property(minted, position, fc.constantFrom(...alphabet.split('')), ({ credential }, at, character) => {
      fc.pre(credential[at] !== character)
      expect(credentialForm(credential.slice(0, at) + character + credential.slice(at + 1))).toEqual({ form: 'malformed' })
    }),
  )
})

test('two swapped neighbours are caught too', () => {
  fc.assert(
    fc.property(minted, fc.integer({ min: 6, max: 63 }), ({ credential }, at) => {
      const [a = '', b = ''] = [credential[at], credential[at + 1]]
      fc.pre(a !== b)
      expect(credentialForm(credential.slice(0, at) + b + a + credential.slice(at + 2))).toEqual({ form: 'malformed' })
    }),
  )
})

test('any text is checked without an error, and only a text that begins with sk- can be a credential', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      if (!text.startsWith('sk-')) expect(credentialForm(text)).toEqual({ form: 'malformed' })
      expect(hashCredential(text)).toHaveLength(43)
    }),
  )
})
