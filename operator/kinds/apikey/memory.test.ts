import { beforeEach, describe, expect, test } from 'vitest'
import { secretOf, verifierOf } from '../../../test/support/observed-key.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { mintCredential } from '#contract/values/credential.ts'
import { KubeError } from '#kube/port.ts'
import { CredentialVault, KeyMemory } from './memory.ts'

let clock: ManualClock
let memory: KeyMemory

beforeEach(() => {
  clock = new ManualClock()
  memory = new KeyMemory(clock)
})

describe('the last read of a Secret', () => {
  const ours = secretOf(verifierOf(1))

  test.each([
    [ours, 180_000],
    [{ state: 'Absent' }, 180_000],
    [{ state: 'Unreadable' }, 180_000],
    [{ state: 'Foreign' }, 60_000],
    [{ state: 'LeftOver' }, 500],
  ] as const)('with state $state counts for its time and no longer', async (secret, forMs) => {
    memory.rememberSecret('a', 1, secret)
    await clock.advance(forMs - 1)
    expect(memory.secret('a', 1)).toEqual(secret)
    await clock.advance(1)
    expect(memory.secret('a', 1)).toEqual({ state: 'Unknown' })
  })

  test('does not count for another generation of the manifest, which may ask for other labels', () => {
    memory.rememberSecret('a', 1, ours)
    expect(memory.secret('a', 2)).toEqual({ state: 'Unknown' })
    expect(memory.secret('b', 1)).toEqual({ state: 'Unknown' })
  })
})

test('a successful trial write counts for ten seconds', async () => {
  expect(memory.isSecretWritable('a')).toBe(false)
  memory.trialSucceeded('a')
  await clock.advance(9_999)
  expect(memory.isSecretWritable('a')).toBe(true)
  await clock.advance(1)
  expect(memory.isSecretWritable('a')).toBe(false)
})

test('a refused write ends a successful trial, so that the next generation is tried before it is minted', () => {
  memory.trialSucceeded('a')
  memory.failed('a', 'SecretRead', new Error('no'))
  expect(memory.isSecretWritable('a')).toBe(true)
  memory.failed('a', 'SecretWrite', new Error('no'))
  expect(memory.isSecretWritable('a')).toBe(false)
})

test('the age of a deletion counts from the time at which this process first saw it', async () => {
  await clock.advance(5_000)
  expect(memory.deletingForMs('a')).toBe(0)
  await clock.advance(700)
  expect(memory.deletingForMs('a')).toBe(700)
  expect(memory.deletingForMs('b')).toBe(0)
})

describe('revisions of one key', () => {
  test('are five at once, then one per second', async () => {
    for (let edit = 0; edit < 5; edit += 1) {
      expect(memory.revisionInMs('a')).toBe(0)
      memory.revised('a')
    }
    expect(memory.revisionInMs('a')).toBe(1_000)
    await clock.advance(400)
    expect(memory.revisionInMs('a')).toBe(600)
    await clock.advance(600)
    expect(memory.revisionInMs('a')).toBe(0)
    memory.revised('a')
    expect(memory.revisionInMs('a')).toBe(1_000)
  })

  test('are still counted after the key has settled: otherwise every edit would be the first', () => {
    for (let edit = 0; edit < 5; edit += 1) memory.revised('a')
    memory.settled('a')
    expect(memory.revisionInMs('a')).toBe(1_000)
  })
})

describe('failures', () => {
  const refusal = new KubeError('QuotaExceeded', 403, 'create secrets bot: exceeded quota')

  test('end when the key settles, which returns whether the status still shows one', () => {
    memory.failed('a', 'Other', refusal)
    expect(memory.settled('a')).toBe(true)
    expect(memory.failures('a')).toEqual([])
    expect(memory.settled('a')).toBe(false)
  })

  test('of the keyring are tried again after 1 s, 2 s, 4 s, and at most five minutes', () => {
    const waits = Array.from({ length: 12 }, () => memory.commitFailed('a', 'KeyringFull', 'full'))
    expect(waits.slice(0, 3)).toEqual([1_000, 2_000, 4_000])
    expect(waits.at(-1)).toBe(300_000)
  })

  test('of the keyring stay until a commit succeeds, also after the wait is over', async () => {
    memory.commitFailed('a', 'KeyringFull', 'full')
    memory.failed('a', 'SecretWrite', refusal)
    await clock.advance(400)
    expect(memory.failures('a').map(({ topic, retryInMs }) => [topic, retryInMs])).toEqual([
      ['Keyring', 600],
      ['SecretWrite', 0],
    ])
    await clock.advance(10_000)
    expect(memory.failures('a')[0]).toMatchObject({ topic: 'Keyring', code: 'KeyringFull', retryInMs: 0 })
    memory.succeeded('a', 'Keyring')
    expect(memory.failures('a').map(({ topic }) => topic)).toEqual(['SecretWrite'])
    expect(memory.commitFailed('a', 'KeyringFull', 'full')).toBe(1_000)
  })
})

test('the vault returns no Credential that is older than ten minutes', async () => {
  const { credential } = mintCredential()
  const vault = new CredentialVault(clock)
  vault.hold('a', credential)
  await clock.advance(600_000 - 1)
  expect(vault.get('a')).toBe(credential)
  await clock.advance(1)
  expect(vault.get('a')).toBeUndefined()
})
