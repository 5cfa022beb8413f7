import { describe, expect, test } from 'vitest'
import { mintCredential } from '../../gateway/shared/credential.ts'
import { CredentialVault } from './vault.ts'

const MINUTE = 60_000

describe('CredentialVault', () => {
  const { credential } = mintCredential()

  test('holds a Credential until it is delivered', () => {
    const vault = new CredentialVault()
    vault.hold('a', credential, 0)
    expect(vault.get('a', 5 * MINUTE)).toBe(credential)
    expect(vault.get('b', 0)).toBeUndefined()
    vault.drop('a')
    expect(vault.get('a', 0)).toBeUndefined()
  })

  test('gives none away that is older than ten minutes, asked for or not', () => {
    const vault = new CredentialVault()
    vault.hold('a', credential, 0)
    expect(vault.get('a', 10 * MINUTE - 1)).toBe(credential)
    expect(vault.get('a', 10 * MINUTE)).toBeUndefined()
    vault.hold('b', credential, 11 * MINUTE)
    expect(vault.get('a', 0)).toBeUndefined() // dropped from memory, not only hidden
  })
})
