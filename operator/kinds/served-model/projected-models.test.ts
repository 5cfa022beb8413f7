import { describe, expect, test } from 'vitest'
import { decodeModelRecord, type ModelRecord } from '#contract/records/model-record.ts'
import { modelText } from '../../../test/support/records.ts'
import { ProjectedModels } from './projected-models.ts'

const PRICE = { inputPerMillion: 0, outputPerMillion: 0, cachedInputPerMillion: 0 }

function model(uid: string, change: Partial<ModelRecord> = {}): ModelRecord {
  return decodeModelRecord(modelText(uid, change))
}

function filled(...records: readonly ModelRecord[]): ProjectedModels {
  const models = new ProjectedModels()
  for (const record of records) models.set(record)
  return models
}

const unpriced = (models: ProjectedModels, allowed: readonly string[] = ['*'], namespace = 'shop'): readonly string[] =>
  models.lacking('isPriced', namespace, [allowed])

describe('models without a price that a key may call', () => {
  test('are named, sorted; zero is a price', () => {
    expect(unpriced(filled(model('b'), model('free', { pricing: PRICE }), model('a')))).toEqual(['a', 'b'])
  })

  test('are those that its allow-list admits, by any of their names', () => {
    const models = filled(model('llama-3', { aliases: ['small'] }), model('qwen-7b'), model('phi'))
    expect(unpriced(models, ['small'])).toEqual(['llama-3'])
    expect(unpriced(models, ['qwen-*', '*-3'])).toEqual(['llama-3', 'qwen-7b'])
    expect(unpriced(models, ['other', 'ph'])).toEqual([])
  })

  test('are those that its namespace can call', () => {
    const models = filled(
      model('own'),
      model('theirs', { namespace: 'bank', allowedNamespaces: ['bank'] }),
      model('open', { allowedNamespaces: '*' }),
    )
    expect(unpriced(models)).toEqual(['open', 'own'])
    expect(unpriced(models, ['*'], 'bank')).toEqual(['open', 'theirs'])
  })

  test('are owners of the name: the oldest of its own namespace, or else the oldest that admits it', () => {
    const old = model('old', { servedName: 'llama', namespace: 'bank', allowedNamespaces: '*', createdMs: 1 })
    const own = model('own', { servedName: 'llama', createdMs: 5, pricing: PRICE })
    const young = model('young', { servedName: 'llama', createdMs: 9 })
    expect(unpriced(filled(old, own, young))).toEqual([])
    expect(unpriced(filled(old, young))).toEqual(['llama'])
    expect(unpriced(filled(old, own), ['*'], 'mill')).toEqual(['llama'])
  })

  test('are known again when one gets a price, loses it, or is deleted', () => {
    const models = filled(model('a'))
    models.set(model('a', { pricing: PRICE }))
    expect(unpriced(models)).toEqual([])
    models.set(model('a'))
    expect(unpriced(models)).toEqual(['a'])
    models.delete('a')
    expect(unpriced(models)).toEqual([])
  })
})

test('an answer is bounded by maxOutputTokens or by contextTokens', () => {
  const models = filled(model('a', { maxOutputTokens: 1 }), model('b', { contextTokens: 1 }), model('c'))
  expect(models.lacking('isBounded', 'shop', [['*']])).toEqual(['c'])
})

describe('a listener of the models', () => {
  test('receives the namespaces whose keys may be affected, before and after a change', () => {
    const models = filled(model('a', { allowedNamespaces: ['shop', 'bank'] }))
    const heard: unknown[] = []
    models.onChanged((namespaces) => heard.push(namespaces))
    models.set(model('a', { allowedNamespaces: ['shop', 'mill'] }))
    models.set(model('a', { allowedNamespaces: '*' }))
    models.delete('a')
    expect(heard).toEqual([['shop', 'bank', 'mill'], '*', '*'])
  })

  test('is not called for endpoints, nor for models with price and bound', () => {
    const models = filled(model('a'))
    const heard: unknown[] = []
    models.onChanged((namespaces) => heard.push(namespaces))
    const moved = model('a')
    models.set({ ...moved, backends: moved.backends.map((backend) => ({ ...backend, endpoints: ['10.0.0.9:1'] })) })
    expect(heard).toEqual([])
    const whole = filled(model('b', { pricing: PRICE, contextTokens: 1 }))
    whole.onChanged((namespaces) => heard.push(namespaces))
    whole.set(model('c', { pricing: PRICE, contextTokens: 1 }))
    expect(heard).toEqual([])
  })
})

test('the models of 5,000 namespaces cost a namespace about as much as those of 50', () => {
  const cpuMsOf = (namespaces: number): number => {
    const models = new ProjectedModels()
    for (let at = 0; at < 2 * namespaces; at += 1)
      models.set(model(`m${at}`, { namespace: `ns-${at >> 1}`, allowedNamespaces: [`ns-${at >> 1}`], servedName: 'llama' }))
    const before = process.cpuUsage()
    for (let at = 0; at < 50; at += 1) expect(unpriced(models, ['*'], `ns-${at}`)).toEqual(['llama'])
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
  const least = (namespaces: number): number => Math.min(...[1, 2, 3].map(() => cpuMsOf(namespaces))) // without a collection of garbage
  least(50) // warms up
  expect(least(5_000) / least(50)).toBeLessThan(10)
}, 60_000)
