import { describe, expect, test } from 'vitest'
import { admits } from './model-access.ts'

const scope = (...models: string[][]) => ({ models })

describe('a key may use a model', () => {
  test.each([
    ['by its exact name', scope(['llama']), ['llama'], true],
    ['by one of its aliases', scope(['small']), ['llama', 'small'], true],
    ['by the beginning of its name', scope(['qwen-*']), ['qwen-72b'], true],
    ['by the end of its name', scope(['*-instruct']), ['llama-instruct'], true],
    ['by the bare beginning', scope(['qwen-*']), ['qwen-'], true],
    ['when every model is allowed', scope(['*']), ['anything/at:all'], true],
    ['when all lists admit it, each by another name', scope(['llama'], ['small']), ['llama', 'small'], true],
    ['not by another case', scope(['llama']), ['Llama'], false],
    ['not by a part of its name', scope(['llama']), ['llama-2'], false],
    ['not by the end where the beginning is meant', scope(['qwen-*']), ['my-qwen-'], false],
    ['not when one list does not admit it', scope(['*'], ['llama']), ['qwen'], false],
    ['not when no name is left', scope(['llama']), [], false],
  ])('%s', (_, record, names, expected) => {
    expect(admits(record, names)).toBe(expected)
    expect(admits(record, names)).toBe(expected) // from memory
  })

  test('and keys do not share answers', () => {
    expect(admits(scope(['a']), ['a'])).toBe(true)
    expect(admits(scope(['b']), ['a'])).toBe(false)
  })

  test('and a name that looks like two names is one name', () => {
    const record = scope(['llama'])
    expect(admits(record, ['qwen', 'llama'])).toBe(true)
    expect(admits(record, ['qwen\nllama'])).toBe(false)
  })

  test('however many names clients invent: the memory for answers is bounded', () => {
    const record = scope(['llama'])
    for (let i = 0; i < 2_000; i++) expect(admits(record, [`invented-${i}`])).toBe(false)
    expect(admits(record, ['llama'])).toBe(true)
    expect(admits(record, ['x'.repeat(1_000_000)])).toBe(false)
  })
})
