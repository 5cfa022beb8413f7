import { describe, expect, it } from 'vitest'
import { backendRecord, modelRecord } from '../../test/support/upstream-harness.ts'
import { type BackendRecord, encodeModelRecord, type ModelRecord } from '#contract/records/model-record.ts'
import { ModelTable, targetsOf } from './model-table.ts'

function tableOf(...records: ReadonlyArray<Partial<ModelRecord>>): ModelTable {
  const table = new ModelTable({ allowLoopback: false })
  for (const changes of records) put(table, changes)
  return table
}

function put(table: ModelTable, changes: Partial<ModelRecord>): boolean {
  const record = modelRecord({ allowedNamespaces: '*', ...changes })
  return table.put(record.uid, encodeModelRecord(record))
}

const uidOf = (table: ModelTable, namespace: string, name: string): string | undefined => table.resolve(namespace, name)?.record.uid
/** Every name of a model that admits all namespaces. */
const namesOf = (table: ModelTable): string[] => table.visible('shop').map(({ name }) => name)
const origins = (table: ModelTable): string[] => targetsOf(table.resolve('shop', 'llama')).map(({ health }) => health.origin)

describe('a model name', () => {
  it('means the model of the own namespace, even if another is older', () => {
    const table = tableOf(
      { uid: 'old', namespace: 'ml', createdMs: 1 },
      { uid: 'own', namespace: 'shop', createdMs: 9, allowedNamespaces: ['shop'] },
    )
    expect(uidOf(table, 'shop', 'llama')).toBe('own')
    expect(uidOf(table, 'lab', 'llama')).toBe('old')
  })

  it('means the oldest model that admits the namespace; equal age is settled by uid', () => {
    const table = tableOf(
      { uid: 'c', namespace: 'ml', createdMs: 2 },
      { uid: 'b', namespace: 'ml', createdMs: 1, allowedNamespaces: ['lab'] },
      { uid: 'a', namespace: 'x', createdMs: 2 },
    )
    expect(uidOf(table, 'shop', 'llama')).toBe('a')
    expect(uidOf(table, 'lab', 'llama')).toBe('b')
    expect(uidOf(table, 'ml', 'llama')).toBe('b')
  })

  it('may be an alias: aliases and served names share one namespace', () => {
    const table = tableOf(
      { uid: 'new', createdMs: 2, servedName: 'fast', aliases: ['small'] },
      { uid: 'old', createdMs: 1, servedName: 'big', aliases: ['fast'] },
    )
    expect(uidOf(table, 'shop', 'fast')).toBe('old')
    expect(uidOf(table, 'shop', 'small')).toBe('new')
    expect(table.visible('shop').map(({ name, entry }) => [name, entry.record.uid])).toEqual([
      ['big', 'old'],
      ['fast', 'old'],
      ['small', 'new'],
    ])
  })

  it('is unknown to a namespace that no model admits, and case counts', () => {
    const table = tableOf({ namespace: 'ml', allowedNamespaces: ['lab'] })
    expect(table.resolve('shop', 'llama')).toBeUndefined()
    expect(table.visible('shop')).toEqual([])
    expect(table.resolve('lab', 'Llama')).toBeUndefined()
    expect(uidOf(table, 'ml', 'llama')).toBeDefined()
  })

  it('is removed with its model, and the next model takes it over', () => {
    const table = tableOf({ uid: 'a', createdMs: 1 }, { uid: 'b', createdMs: 2 })
    table.delete('a')
    expect(uidOf(table, 'shop', 'llama')).toBe('b')
    table.delete('b')
    expect(namesOf(table)).not.toContain('llama')
  })

  it('is listed again only for the namespaces that may use the changed model, before or after the change', () => {
    const table = tableOf(
      { uid: 'own', namespace: 'shop', allowedNamespaces: ['shop'] },
      { uid: 'x', namespace: 'evil', allowedNamespaces: ['evil', 'lab'] },
    )
    const lists = () => ['shop', 'lab', 'evil', 'ops'].map((namespace) => table.visible(namespace))
    const changed = (before: readonly unknown[]) => lists().map((list, at) => list !== before[at])
    let before = lists()
    put(table, { uid: 'x', namespace: 'evil', allowedNamespaces: ['evil', 'ops'], servedName: 'renamed' })
    expect(changed(before)).toEqual([false, true, true, true])
    expect(table.visible('ops').map(({ name }) => name)).toEqual(['renamed'])
    before = lists()
    table.delete('x')
    expect(changed(before)).toEqual([false, false, true, true])
    expect(table.visible('ops')).toEqual([])
  })

  it('changes with its record', () => {
    const table = tableOf({ servedName: 'one' })
    put(table, { servedName: 'two' })
    expect(namesOf(table)).toEqual(['two'])
  })
})

describe('a record', () => {
  it('that is unreadable leaves the last good one in place', () => {
    const table = tableOf({})
    expect(table.put('uid-1', '{"v":99}')).toBe(false)
    expect(table.put('uid-9', 'nonsense')).toBe(false)
    expect(uidOf(table, 'shop', 'llama')).toBe('uid-1')
  })

  it('that needs what this version lacks leaves the model without a server, so that its calls answer 503', () => {
    const backends = [backendRecord({ endpoints: ['10.0.0.1:8000'] })]
    const unmet = (changes: Partial<ModelRecord>): string => {
      const text = encodeModelRecord(modelRecord({ allowedNamespaces: '*', revision: 9, backends, ...changes }))
      return JSON.stringify({ ...(JSON.parse(text) as object), needs: ['later'] })
    }
    const table = tableOf({ backends })
    expect(origins(table)).not.toEqual([])
    expect(table.put('uid-1', unmet({ aliases: ['other'] }))).toBe(false)
    expect([origins(table), namesOf(table)]).toEqual([[], ['llama', 'other']])
    const load = table.load()
    expect(load.put('uid-1', unmet({}))).toBe(false)
    expect(load.put('uid-2', unmet({ uid: 'uid-2', servedName: 'fresh' }))).toBe(false)
    load.commit()
    expect([origins(table), namesOf(table)]).toEqual([[], ['fresh', 'llama']])
    put(table, { revision: 10, backends })
    expect(origins(table)).not.toEqual([])
  })

  it('whose need changes its fields too leaves the last good one without a server', () => {
    const table = tableOf({ backends: [backendRecord({ endpoints: ['10.0.0.1:8000'] })] })
    expect(table.put('uid-1', '{"v":1,"needs":["later"],"uid":"uid-1"}')).toBe(false)
    expect([uidOf(table, 'shop', 'llama'), origins(table)]).toEqual(['uid-1', []])
  })

  it('is served from the old load until the new one is committed', () => {
    const table = tableOf({ uid: 'a', servedName: 'a' }, { uid: 'b', servedName: 'b' }, { uid: 'c', servedName: 'c' })
    const load = table.load()
    expect(load.put('a', 'damaged')).toBe(false)
    expect(load.put('d', encodeModelRecord(modelRecord({ uid: 'd', servedName: 'd' })))).toBe(true)
    load.put('c', encodeModelRecord(modelRecord({ uid: 'c', servedName: 'c' })))
    load.delete('c')
    expect(namesOf(table)).toEqual(['a', 'b', 'c'])
    load.commit()
    expect(namesOf(table)).toEqual(['a', 'd'])
  })

  it('names its servers: endpoints first, the Service for a cold start, a url unchanged', () => {
    expect(
      origins(tableOf({ backends: [backendRecord({ endpoints: ['10.0.0.1:8000', '[fd00::1]:8000'], service: 'llama.shop.svc:80' })] })),
    ).toEqual(['http://10.0.0.1:8000', 'http://[fd00::1]:8000'])
    expect(origins(tableOf({ backends: [backendRecord({ service: 'llama.shop.svc:8000' })] }))).toEqual(['http://llama.shop.svc:8000'])
    const [target] = targetsOf(tableOf({ backends: [backendRecord({ url: 'https://models.example.com/a/b/' })] }).resolve('shop', 'llama'))
    expect(target).toMatchObject({
      prefix: '/a/b',
      health: { origin: 'https://models.example.com', host: 'models.example.com', port: 443 },
    })
  })

  it('with a refused address keeps the others', () => {
    const table = tableOf({ backends: [backendRecord({ endpoints: ['127.0.0.1:8000', '10.0.0.1:8000', '169.254.169.254:80'] })] })
    expect(origins(table)).toEqual(['http://10.0.0.1:8000'])
    expect(table.resolve('shop', 'llama')?.backends[0]?.total).toBe(3)
  })

  it('keeps the health of an endpoint that stays, and retires the others', () => {
    const table = tableOf({ backends: [backendRecord({ endpoints: ['10.0.0.1:80', '10.0.0.2:80'] })] })
    const [stays, goes] = targetsOf(table.resolve('shop', 'llama'))
    const load = table.load()
    load.put('uid-1', encodeModelRecord(modelRecord({ backends: [backendRecord({ endpoints: ['10.0.0.3:80', '10.0.0.1:80'] })] })))
    load.commit()
    expect(targetsOf(table.resolve('shop', 'llama'))[1]?.health).toBe(stays?.health)
    expect([stays?.health.isRetired, goes?.health.isRetired]).toEqual([false, true])
  })

  it('serves the routes of those backends that have a weight', () => {
    const backends = [backendRecord({ routes: ['embeddings'] }), backendRecord({ name: 'unused', routes: ['messages'], weight: 0 })]
    expect(tableOf({ backends }).resolve('shop', 'llama')?.routes).toEqual(new Set(['embeddings']))
  })
})

it('a url inside the cluster is called only for a namespace that the administrator lists, whatever the record says', () => {
  const table = new ModelTable({ allowLoopback: false, clusterNamespaces: ['trusted'] })
  const callable = (namespace: string, backend: Partial<BackendRecord>): number | undefined => {
    put(table, { namespace, backends: [backendRecord(backend)] })
    return table.resolve('any', 'llama')?.backends[0]?.targets.length
  }
  for (const url of ['http://vllm.team-b.svc:8000', 'http://10.9.9.9:8000', 'http://vllm']) {
    expect([callable('team-a', { url }), callable('trusted', { url })], url).toEqual([0, 1])
  }
  expect(callable('team-a', { endpoints: ['10.9.9.9:8000'] })).toBe(1)
  expect(callable('team-a', { url: 'https://models.example' })).toBe(1)
})
