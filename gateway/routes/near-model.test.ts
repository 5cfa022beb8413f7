import { describe, expect, test } from 'vitest'
import { modelRecord } from '../../test/support/front-gateway.ts'
import { issuedKey } from '../../test/support/records.ts'
import { mintCredential } from '#contract/values/credential.ts'
import { encodeModelRecord } from '#contract/records/model-record.ts'
import { ModelTable } from '../upstream/model-table.ts'
import { modelRefusal } from './near-model.ts'

const LIST = 'GET /v1/models lists the models that this key may call'
const SERVED = ['llama-3.1-8b', 'Qwen3', 'meta/mistral-small', 'secret-model']

function refused(name: string, scope: readonly string[] = ['*'], served: readonly string[] = SERVED): string {
  const models = new ModelTable({ allowLoopback: true })
  for (const one of served) models.put(`uid-${one}`, encodeModelRecord(modelRecord(one)))
  const { record } = issuedKey('a', { namespace: 'shop', models: [scope] })
  return modelRefusal('modelDenied', name, record, { models }).message
}

describe('a refused model name', () => {
  test.each([
    ['LLAMA-3.1-8B', 'llama-3.1-8b'],
    ['llama 3.1 8b', 'llama-3.1-8b'],
    ['llama3.1:8b', 'llama-3.1-8b'],
    ['meta-llama/Llama-3.1-8B', 'llama-3.1-8b'],
    ['mistral-small', 'meta/mistral-small'],
    ['llama-3.1-8', 'llama-3.1-8b'],
    ['lalma-3.1-8b', 'llama-3.1-8b'],
    ['qwen2', 'Qwen3'],
  ])('%j suggests %s', (name, near) => {
    expect(refused(name)).toBe(`key not allowed to access model ${name}; did you mean "${near}"? ${LIST}`)
  })

  test('suggests nothing where nothing is similar', () => {
    for (const name of ['gpt-4o', '!!!', 'llama-2']) expect(refused(name)).toBe(`key not allowed to access model ${name}; ${LIST}`)
  })

  test('is in quotes if it has invisible characters', () => {
    expect(refused('Qwen3 ')).toBe(`key not allowed to access model Qwen3 ; the name was sent as "Qwen3 "; did you mean "Qwen3"? ${LIST}`)
    expect(refused('Qwen3\n')).toContain('; the name was sent as "Qwen3\\u000a"; did you mean "Qwen3"?')
    expect(refused('Qwen\u00a03\u200b')).toContain('; the name was sent as "Qwen\\u00a03\\u200b"; did you mean "Qwen3"?')
  })

  test('E2 never suggests a model that the key may not call', () => {
    expect(refused('SECRET-MODEL', ['llama-*'])).toBe(`key not allowed to access model SECRET-MODEL; ${LIST}`)
    expect(refused('secret-modell', ['llama-*'])).toBe(`key not allowed to access model secret-modell; ${LIST}`)
  })

  test('E14 a key in the place of the name is not repeated, also with invisible characters in it', () => {
    const { credential } = mintCredential()
    for (const name of [credential, ` ${credential}`, `${credential.slice(0, 3)}\u0000${credential.slice(3)}`])
      expect(refused(name)).not.toContain(credential.slice(10, 20))
  })

  test('is compared with a bounded number of names', () => {
    const many = Array.from({ length: 300 }, (_, i) => `model-number-${i}`)
    expect(refused('MODEL-NUMBER-7', ['*'], many)).toContain('did you mean "model-number-7"?')
    expect(refused('model-numbr-7', ['*'], many)).not.toContain('did you mean')
  })
})
