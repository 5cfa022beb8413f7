import { describe, expect, test } from 'vitest'
import { apiKey } from '../test/support/objects.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import { API_KINDS } from '#api/kinds.ts'
import { ageOf, STEPS, tableOf } from './printed-table.ts'

const NOW = Date.UTC(2026, 0, 2)
const CREATED = { creationTimestamp: '2026-01-01T23:00:00Z' }
const ready = (status: string, reason: string) => ({ conditions: [{ type: 'Accepted' }, { type: 'Ready', status, reason }] })

describe('a table of make status', () => {
  test('has the columns of kubectl get -A, without those of -o wide, sorted by namespace and name', () => {
    const keys = [
      {
        ...apiKey('bot', {}, CREATED),
        status: { ...ready('True', 'Ready'), prefix: 'sk-hg1Ab…wxyz', summary: { used: '40%', models: '*' } },
      },
      { ...apiKey('bad', {}, CREATED), status: { ...ready('False', 'Expired'), expirationTime: '2026-01-01T00:00:00Z' } },
      { ...apiKey('new', {}, { namespace: 'a', ...CREATED }) },
    ]
    expect(tableOf(apiKeyKind, keys as never, NOW)).toBe(
      [
        'NAMESPACE   NAME                      READY   REASON    PREFIX          USED   EXPIRES                AGE',
        'a           apikey.headgate.dev/new                                                                   60m',
        'shop        apikey.headgate.dev/bad   False   Expired                          2026-01-01T00:00:00Z   60m',
        'shop        apikey.headgate.dev/bot   True    Ready     sk-hg1Ab…wxyz   40%                           60m',
        '',
      ].join('\n'),
    )
  })

  test('can show every column of every kind', () => {
    for (const { columns } of API_KINDS) for (const { jsonPath } of columns) expect(jsonPath.replaceAll(STEPS, '')).toBe('')
  })

  test.each([
    [-5, '0s'],
    [120, '2m'],
    [200, '3m20s'],
    [3 * 3600 + 300, '3h5m'],
    [47 * 3600, '47h'],
    [49 * 3600, '2d1h'],
    [9 * 86_400, '9d'],
    [800 * 86_400, '2y70d'],
  ])('writes an age of %i s as kubectl does: %s', (seconds, text) => {
    expect(ageOf(seconds * 1_000)).toBe(text)
  })
})
