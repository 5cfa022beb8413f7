import { describe, expect, test } from 'vitest'
import { sha256 } from '../../test/support/hash-keys.ts'
import { readKeys, UnreadableFile } from './read-keys.ts'

const HASH = sha256('sk-a')
const ROW = { token: HASH, key_alias: 'a', models: ['llama'] }
const keysIn = (text: unknown) => readKeys(typeof text === 'string' ? text : JSON.stringify(text)).keys
const first = (text: unknown) => {
  const [read] = keysIn(text)
  return read?.ok === true ? read.key : undefined
}

describe('a file may be', () => {
  test.each([
    ['the answer of /key/list', { keys: [ROW], total_count: 1, current_page: 1, total_pages: 1 }],
    ['the answer of /key/info', { key: HASH, info: { key_alias: 'a', models: ['llama'] } }],
    ['rows of the table', [ROW]],
    ['pages of /key/list, as jq -s makes them', [{ keys: [ROW], total_pages: 1 }]],
    ['answers of /key/info, as jq -s makes them', [{ key: HASH, info: { key_alias: 'a', models: ['llama'] } }]],
  ])('%s', (_, json) => {
    expect(first(json)).toMatchObject({ token: HASH, key_alias: 'a', models: ['llama'] })
  })

  test('a CSV of the table, as PostgreSQL writes it', () => {
    const header = 'token,key_name,key_alias,spend,expires,models,aliases,metadata,blocked,tpm_limit,max_budget'
    const row = `${HASH},sk-...AbCd,"Bot, ""the"" one",3.5,2027-01-01 00:00:00,"{llama,""a b""}",{},"{""tags"": [""x""]}",t,,12.5`
    expect(first(`${header}\r\n${row}\r\n`)).toMatchObject({
      token: HASH,
      key_alias: 'Bot, "the" one',
      models: ['llama', 'a b'],
      metadata: { tags: ['x'] },
      blocked: true,
      tpm_limit: undefined,
      max_budget: '12.5',
      expires: '2027-01-01 00:00:00',
    })
    expect(first(`token,models\n${HASH},{}`)).toMatchObject({ models: [] })
    expect(first(`\uFEFFtoken,models,key_alias\n${HASH},{a},`)).toMatchObject({ models: ['a'], key_alias: undefined })
    expect(first(`token,models,key_alias\n${HASH}`)).toMatchObject({ token: HASH, models: [], key_alias: undefined })
  })
})

describe('an unusable file is refused with reason and remedy', () => {
  test.each([
    ['nothing', '', /is empty.*return_full_object=true/],
    ['not JSON', '{"keys": [', /not JSON/],
    ['another table', 'a,b\n1,2', /columns of LiteLLM_VerificationToken/],
    ['a CSV with a quote that is not closed', `token,models\n${HASH},"{}`, /neither JSON nor a CSV/],
    ['a CSV with a quote within a field', `token,models\n${HASH},a"b`, /neither JSON nor a CSV/],
    ['no keys', '{"keys": []}', /holds no keys/],
    ['an error of LiteLLM', '{"error": {"message": "Authentication Error"}}', /error of LiteLLM.*proxy admin/],
    [
      'an error among the pages',
      '[{"keys": []}, {"error": {"message": "Too many requests"}}]',
      /answer 2 of the file is an error of LiteLLM/,
    ],
  ])('%s', (_, text, message) => {
    expect(() => readKeys(text)).toThrow(UnreadableFile)
    expect(() => readKeys(text)).toThrow(message)
  })

  test('without repeating its content', () => {
    expect(() => readKeys('{"token": sk-secret-value}')).toThrow(expect.objectContaining({ message: expect.not.stringContaining('sk-') }))
  })
})

describe('an unusable entry is named, and the others are read', () => {
  test('a hash alone: the answer without return_full_object', () => {
    const [read] = keysIn({ keys: [HASH] })
    expect(read).toMatchObject({
      ok: false,
      place: 'entry 1',
      reason: expect.stringContaining('only a hash'),
      remedy: expect.stringContaining('return_full_object'),
    })
  })

  test('fields of another form, by their names alone', () => {
    const [bad, good] = keysIn([{ ...ROW, token: 7, models: { a: 'sk-secret-value' } }, ROW])
    expect(bad).toMatchObject({ ok: false, alias: 'a', reason: expect.stringMatching(/^models: not of the form/) })
    expect(JSON.stringify(bad)).not.toContain('sk-secret')
    expect(good).toMatchObject({ ok: true })
    expect(keysIn([{ models: [] }])[0]).toMatchObject({ ok: false, reason: expect.stringContaining('token') })
  })
})

test('a list that is one page of several is reported', () => {
  expect(readKeys(JSON.stringify({ keys: [ROW], current_page: 1, total_pages: 3 })).notes.join()).toContain('1 of 3 pages')
  const pages = [1, 2].map((current_page) => ({ keys: [ROW], current_page, total_pages: 2 }))
  expect(readKeys(JSON.stringify(pages)).notes).toEqual([])
})
