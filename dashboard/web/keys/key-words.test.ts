import { describe, expect, it } from 'vitest'
import { callableModels, lastUsedFact, lastUsedWords, modelsWords, shortLimit } from './key-words.ts'
import { PLAN } from './sample.ts'

it.each([
  [undefined, 'Never used'],
  ['2026-11-24T12:00:00Z', 'Within the hour'],
  ['2026-11-24T13:00:00Z', 'Within the hour'],
  ['2026-11-24T09:00:00Z', '3 h ago'],
  ['2026-11-24T00:00:00Z', '12 h ago'],
  ['2026-11-23T23:00:00Z', 'Yesterday'],
  ['2026-11-23T00:00:00Z', 'Yesterday'],
  ['2026-11-22T23:00:00Z', '22 Nov'],
  ['2025-11-24T12:00:00Z', '24 Nov 2025'],
])('a key last used at %s was used "%s"', (time, words) => {
  expect(lastUsedWords(time, new Date('2026-11-24T12:30:00Z'))).toBe(words)
})

it.each([
  [undefined, 'Never used'],
  ['2026-11-24T09:00:00Z', 'Last used 3 h ago'],
  ['2026-11-24T12:00:00Z', 'Last used within the hour'],
  ['2026-11-22T23:00:00Z', 'Last used 22 Nov'],
])('in a sentence, a key last used at %s reads "%s"', (time, words) => {
  expect(lastUsedFact(time, new Date('2026-11-24T12:30:00Z'))).toBe(words)
})

describe('the models of a key', () => {
  it.each([
    [['*'], 'All 3 of the plan'],
    [['a', 'b'], '2 models'],
    [['bge-m3'], 'bge-m3'],
  ])('%j are "%s"', (models, words) => {
    expect(modelsWords({ models }, PLAN)).toBe(words)
  })

  it('match an entry of the allow-list as the gateway matches it', () => {
    const names = (models: readonly string[]): readonly string[] => callableModels(models, PLAN).map(({ name }) => name)
    expect(names(['llama-*'])).toEqual(['llama-3.1-8b', 'llama-3.3-70b'])
    expect(names(['*-70b'])).toEqual(['llama-3.3-70b'])
    expect(names(['*'])).toHaveLength(3)
    expect(names(['llama'])).toEqual([])
  })
})

it('a limit is short without losing a digit', () => {
  expect([shortLimit('tokensPerMinute', 100_000), shortLimit('tokensPerMinute', 40_500), shortLimit('requestsPerMinute', 1000)]).toEqual([
    '100k TPM',
    '40,500 TPM',
    '1,000 RPM',
  ])
})
