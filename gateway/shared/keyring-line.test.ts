import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { issuedKey, keyringLine } from '../../test/support/records.ts'
import {
  decodeKeyringShard,
  decodeModelsFile,
  encodeKeyringShard,
  encodeModelsFile,
  keyRecordOf,
  keyringSecretName,
} from './keyring-line.ts'

const LINE = keyringLine(issuedKey('uid-1').record)

describe('keyring shards', () => {
  test('are gzipped lines under a header, and read back as they were written', () => {
    const shard = { shards: 32, shard: 5, rev: 9, lines: [LINE, { ...LINE, uid: 'uid-2', deleted: 7 }] }
    const bytes = encodeKeyringShard(shard)
    expect(gunzipSync(bytes).toString().split('\n')).toHaveLength(3)
    expect(gunzipSync(bytes).toString()).toMatch(/^\{"schema":1,"shards":32,"shard":5,"rev":9\}\n\{/)
    expect(decodeKeyringShard(bytes)).toEqual(shard)
  })

  test('without keys are valid too', () => {
    expect(decodeKeyringShard(encodeKeyringShard({ shards: 1, shard: 0, rev: 0, lines: [] })).lines).toEqual([])
  })

  test.each([
    ['cut short', encodeKeyringShard({ shards: 1, shard: 0, rev: 0, lines: [LINE] }).subarray(0, 40)],
    ['of another schema', gzipSync('{"schema":2,"shards":1,"shard":0,"rev":0}')],
    ['with a line that cannot be read', gzipSync('{"schema":1,"shards":1,"shard":0,"rev":0}\n{"v":1}')],
    ['no gzip at all', Buffer.from('{}')],
  ])('that are %s are refused whole: half a shard would lose revocations', (_, bytes) => {
    expect(() => decodeKeyringShard(bytes)).toThrow()
  })

  test('have names by their number', () => {
    expect(keyringSecretName(32, 5)).toBe('hg-keyring-32-5')
  })
})

describe('the models file', () => {
  test('gives the records back as text', () => {
    expect(decodeModelsFile(encodeModelsFile(3, ['{"v":1}', '{"v":2}']))).toEqual(['{"v":1}', '{"v":2}'])
    expect(decodeModelsFile(encodeModelsFile(3, []))).toEqual([])
  })
})

describe('what gateways learn from a line', () => {
  test('is the record without the story of its verifiers', () => {
    expect(keyRecordOf(LINE)).toEqual(issuedKeyOf(LINE))
  })

  test('leaves revoked verifiers out, and takes minted ones in: their Credential may be with the user already', () => {
    const [first] = LINE.ver
    const ver = [
      { ...first!, id: 'old', state: 'Revoked' as const },
      { ...first!, id: 'new', state: 'Minted' as const },
    ]
    expect(keyRecordOf({ ...LINE, ver }).ver.map(({ id }) => id)).toEqual(['new'])
  })

  test('reads a deleted key as Revoked', () => {
    expect(keyRecordOf({ ...LINE, deleted: 1 }).st).toBe('Revoked')
  })
})

function issuedKeyOf({ v, rev, uid, ns, name, st, exp, gen, models, ver }: typeof LINE): unknown {
  return { v, rev, uid, ns, name, st, exp, gen, models, ver: ver.map(({ id, h, exp: end }) => ({ id, h, exp: end })) }
}
