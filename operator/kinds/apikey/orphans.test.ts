import { expect, test } from 'vitest'
import { entryFor, heldKey } from '../../../test/support/observed-key.ts'
import { reportKept } from './orphans.ts'

test('of thousands of namespaces that are no longer watched, the hundred with most keys are named', () => {
  const namespaces = Array.from({ length: 5_000 }, (_, at) => `ns-${at}`)
  const entries = ['ns-4711', 'ns-4711', ...namespaces].map((namespace, at) => entryFor(heldKey(), [], { namespace, uid: `${at}` }))
  const lines: object[] = []
  let metric: ReadonlyMap<string, number> = new Map()
  reportKept({
    keyring: { entries: () => entries.values() },
    settings: { watchNamespaces: ['shop'], formerNamespaces: [] },
    apiKeys: { isSynced: () => true },
    metrics: { unwatchedKeys: (counts) => (metric = counts) },
    log: { warn: (fields: object) => void lines.push(fields) } as never,
  })
  expect(lines).toMatchObject([{ count: 5_000, keys: 5_002 }])
  expect([metric.size, [...metric][0]]).toEqual([100, ['ns-4711', 3]])
})
