import { describe, expect, test } from 'vitest'
import { mintCredential } from '#contract/values/credential.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { CredentialVault } from './vault.ts'

const MINUTE = 60_000

describe('CredentialVault', () => {
  const { credential } = mintCredential()

  test('returns no Credential that is older than ten minutes', async () => {
    const clock = new ManualClock()
    const vault = new CredentialVault(clock)
    vault.hold('a', credential)
    await clock.advance(10 * MINUTE - 1)
    expect(vault.get('a')).toBe(credential)
    await clock.advance(1)
    expect(vault.get('a')).toBeUndefined()
  })
})
