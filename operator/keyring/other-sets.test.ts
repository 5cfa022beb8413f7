import { describe, expect, test } from 'vitest'
import { encodeKeyringShard, keyringSecretName, RECORDS_KEY } from '../../gateway/shared/keyring-line.ts'
import { issuedKey, keyringLine } from '../../test/support/records.ts'
import type { Secret } from '../kube/resources.ts'
import { KEYRING_LABEL, otherSets } from './other-sets.ts'

const line = (uid: string, rev: number) => keyringLine(issuedKey(uid).record, { rev })

function shardSecret(shards: number, shard: number, lines: ReturnType<typeof line>[]): Secret {
  const records = encodeKeyringShard({ shards, shard, rev: 0, lines }).toString('base64')
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: keyringSecretName(shards, shard),
      namespace: 'headgate',
      uid: `${shards}-${shard}`,
      labels: { [KEYRING_LABEL]: 'true' },
    },
    data: { [RECORDS_KEY]: records },
  }
}

describe('otherSets', () => {
  test('finds the Secrets of every other number of shards, and of a key the newest line', () => {
    const [old, older] = [line('a', 7), line('a', 3)]
    const present = [shardSecret(2, 0, [line('x', 1)]), shardSecret(4, 1, [older, line('b', 2)]), shardSecret(8, 3, [old])]
    const found = otherSets(present, 2, () => undefined)
    expect(found.lines.map(({ uid, rev }) => [uid, rev])).toEqual([
      ['a', 7],
      ['b', 2],
    ])
    expect(found.secrets.map(({ name }) => name)).toEqual(['hg-keyring-4-1', 'hg-keyring-8-3'])
  })

  test('leaves alone what cannot be read, and Secrets that are no keyring', () => {
    const damaged = { ...shardSecret(4, 0, []), data: { [RECORDS_KEY]: 'AAAA' } }
    const foreign: Secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'hg-keyring-4-2', namespace: 'headgate' }, data: {} }
    const warnings: string[] = []
    expect(otherSets([damaged, foreign], 2, (message) => warnings.push(message))).toEqual({ lines: [], secrets: [] })
    expect(warnings).toEqual([expect.stringContaining('hg-keyring-4-0')])
  })
})
