import { describe, expect, test } from 'vitest'
import {
  credentialForm,
  credentialPrefix,
  hashCredential,
  KEY_HASH_PATTERN,
  keyHashFromHex,
  mintCredential,
  randomKeyID,
} from './credential.ts'

/** Computed once by another program; keys in use depend on them, so they never change. */
const ZEROS = `sk-hg1${'0'.repeat(53)}0wdtCu`
const LETTERS = 'sk-hg1AbCdEfGhIjkLmNoPqRsTuVwXyZ0123456789abcdefghijklmnopq481D9m'
const IMPORTED = 'sk-1234567890abcdefghij'

describe('credentials', () => {
  test('have a check sum of fixed value', () => {
    expect(credentialForm(ZEROS)).toEqual({ form: 'own', id: '0000000000' })
    expect(credentialForm(LETTERS)).toEqual({ form: 'own', id: 'AbCdEfGhIj' })
  })

  test('have a hash of fixed value, the SHA-256 of the whole text', () => {
    expect(hashCredential(ZEROS)).toBe('edFDZRYU3dCapo3npw00jEEGX5QVPpfkLESjZBc1WxI')
    expect(hashCredential(LETTERS)).toBe('247wyiEhlLqTq_5LNjbPhZUgFy3qynVCniJBMeVTnPs')
    expect(hashCredential(IMPORTED)).toBe('ngOVZjdgTqFVmpHHioJUzZwGIjJbzgjCbdZaU8SzA5M')
  })

  test('are minted from the random source alone, with an id, a secret and a check sum', () => {
    const { credential, id } = mintCredential((size) => new Uint8Array(size))
    expect(credential).toBe(ZEROS)
    expect(id).toBe('0000000000')
    expect(hashCredential(credential)).toMatch(KEY_HASH_PATTERN)
  })

  test('use no byte from 248 on, which would make some characters likelier', () => {
    let call = 0
    const { id } = mintCredential((size) => new Uint8Array(size).fill(call++ === 0 ? 255 : 61))
    expect(id).toBe('zzzzzzzzzz')
  })

  test.each([
    ['a wrong check sum', ZEROS.replace(/u$/, 'v')],
    ['one character too many', `${ZEROS}!`],
    ['another prefix', 'pk-1234567890abcdefghij'],
    ['no value after the prefix', 'sk-'],
    ['more than 253 characters after it', `sk-${'a'.repeat(254)}`],
    ['a part of an own value', ZEROS.slice(0, 40)],
    ['an own value and more', `${ZEROS}0`],
    ['a letter that is not ASCII', 'sk-1234567890abcdefghié'],
    ['a space', 'sk-1234567890 abcdefghij'],
    ['a line break at the end', `${IMPORTED}\n`],
    ['nothing', ''],
  ])('with %s are malformed', (_, value) => {
    expect(credentialForm(value)).toEqual({ form: 'malformed' })
  })

  test('of other gateways are taken as they are', () => {
    expect(credentialForm(IMPORTED)).toEqual({ form: 'imported' })
    expect(credentialForm('sk-proj_Abc-1234567890abcdef')).toEqual({ form: 'imported' })
    for (const chosen of ['sk-1234', 'sk-a', 'sk-my.own/key!#', `sk-${'x'.repeat(253)}`])
      expect(credentialForm(chosen)).toEqual({ form: 'imported' })
  })

  test('are found by the hash that other programs write', () => {
    const hex = '9e0395663760' // the beginning of `printf %s sk-1234567890abcdefghij | sha256sum`
    const whole = Buffer.from(hashCredential(IMPORTED), 'base64url').toString('hex')
    expect(whole.startsWith(hex)).toBe(true)
    expect([keyHashFromHex(whole), keyHashFromHex(`sha256:${whole}`)]).toEqual([hashCredential(IMPORTED), hashCredential(IMPORTED)])
    expect(randomKeyID()).toMatch(/^[0-9A-Za-z]{10}$/)
  })

  test('show their first 8 and last 4 characters, short ones only the first 8', () => {
    expect(credentialPrefix(ZEROS)).toBe('sk-hg100…dtCu')
    expect(credentialPrefix(IMPORTED)).toBe('sk-12345…')
    expect(['sk-1', 'sk-1234', 'sk-team-blue'].map(credentialPrefix)).toEqual(['s…', 'sk…', 'sk-t…'])
  })
})
