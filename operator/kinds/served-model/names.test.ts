import { describe, expect, test } from 'vitest'
import { servedModel } from '../../../test/support/objects.ts'
import { namesOf, servedName } from './names.ts'

describe('names of a ServedModel', () => {
  test('clients call it by its servedName, else by the name of the object, and by its aliases', () => {
    expect(servedName(servedModel('llama'))).toBe('llama')
    expect(servedName(servedModel('llama', { servedName: 'llama-3.1-8b' }))).toBe('llama-3.1-8b')
    expect(namesOf(servedModel('llama', { aliases: ['small', 'llama'] }))).toEqual(['llama', 'small'])
  })
})
