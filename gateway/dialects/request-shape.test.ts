import { describe, expect, test } from 'vitest'
import { GatewayError } from '../errors.ts'
import { chatCompletions } from './chat-completions.ts'
import { declared, DISTURBING, MODEL_CHOOSING, requestFields } from './request-shape.ts'

const ASK = { model: 'llama', messages: [{ role: 'user', content: 'hi' }] }

/** Row and field of the refusal; undefined for a request that passes. */
function refusal(body: object): readonly [number, string | undefined] | undefined {
  const read = requestFields(body as Record<string, unknown>, chatCompletions)
  return read instanceof GatewayError ? [read.row.number, read.params.field] : undefined
}

describe('a field that makes a server choose another model', () => {
  test.each([...MODEL_CHOOSING])('%s is refused', (field) => {
    expect(refusal({ ...ASK, [field]: ['other'] })).toEqual([42, field])
  })

  test('is refused in any spelling', () => {
    expect(refusal({ ...ASK, Models: ['other'] })).toEqual([42, 'Models'])
    expect(refusal({ ...ASK, fallbackſ: ['other'] })).toEqual([42, 'fallbackſ'])
  })

  test('is refused also with null, since a parser may take an earlier value of the same name', () => {
    expect(refusal(JSON.parse('{"model":"llama","models":["other"],"models":null}') as object)).toEqual([42, 'models'])
  })

  test('passes within other fields', () => {
    expect(refusal({ ...ASK, metadata: { route: 'x', models: ['y'] } })).toBeUndefined()
  })
})

describe('a field by which a caller disturbs others of the same server', () => {
  test.each([...DISTURBING])('%s is refused', (field) => {
    expect(refusal({ ...ASK, [field]: 1 })).toEqual([11, field])
    expect(refusal({ ...ASK, [field.toUpperCase()]: null })).toEqual([11, field.toUpperCase()])
  })
})

test('a field with a NUL character in its name is refused, since parsers on C strings end it there', () => {
  expect(refusal({ ...ASK, 'model\0': 'other' })).toEqual([11, 'model\0'])
})

test('options of a stream in another spelling are refused: the gateway writes into them', () => {
  expect(refusal({ ...ASK, Stream_Options: { include_usage: false } })).toEqual([11, 'Stream_Options'])
})

describe('L3 every field by which a known server bounds or multiplies an answer', () => {
  const HUGE = 1e300
  const CAPS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'n_predict'] as const
  const MULTIPLIERS = ['n', 'best_of', 'n_cmpl'] as const
  const declaredWith = (fields: object): number | undefined =>
    declared({ ...ASK, max_tokens: 5, max_completion_tokens: 5, ...fields }, chatCompletions).maxOutputTokens

  test.each([...CAPS, ...MULTIPLIERS].flatMap((field) => [300.5, '300', true, [1], {}].map((value) => [field, value] as const)))(
    '%s: %j is refused',
    (field, value) => {
      expect(refusal({ ...ASK, [field]: value })).toEqual([11, field])
    },
  )

  test.each(CAPS)('%s declares no less than a server may produce', (field) => {
    for (const none of [-1, 0, -HUGE]) expect(declaredWith({ [field]: none })).toBeUndefined()
    for (const cap of [1, 7, HUGE]) expect(declaredWith({ [field]: cap })).toBe(Math.max(5, cap))
    expect(declaredWith({ [field]: null })).toBe(5)
  })

  test.each(MULTIPLIERS)('%s counts as answers if it is the largest number', (field) => {
    const choices = (value: number | null): number =>
      declared({ ...ASK, n: 2, best_of: 2, n_cmpl: 2, [field]: value }, chatCompletions).choices
    expect([-1, 0, 1, 7, HUGE, null].map(choices)).toEqual([2, 2, 2, 7, HUGE, 2])
    expect(declared({ ...ASK, [field]: -1 }, chatCompletions).choices).toBe(1)
  })
})

describe('the declarations of a request about its answer', () => {
  const NOTHING = { maxOutputTokens: undefined, choices: 1, prompts: 1, wantsUsage: false }

  test.each<[string, object, object]>([
    ['#36143 no cap', {}, {}],
    ['a cap', { max_tokens: 50 }, { maxOutputTokens: 50 }],
    ['#37001 the larger of two caps, written first', { max_completion_tokens: 10_000, max_tokens: 2 }, { maxOutputTokens: 10_000 }],
    ['#34223 the larger of two caps, written last', { max_completion_tokens: 2, max_tokens: 10_000 }, { maxOutputTokens: 10_000 }],
    ["llama.cpp's own cap beside a small one", { max_tokens: 2, n_predict: 900 }, { maxOutputTokens: 900 }],
    ['a cap of -1, which is none', { max_tokens: -1 }, {}],
    ['L3 a cap of 0 beside another, which some servers read as none', { max_tokens: 0, max_completion_tokens: 7 }, {}],
    ['L3 a cap of -1 beside another', { max_tokens: 1, max_completion_tokens: -1 }, {}],
    ["W3 llama.cpp's own cap of -1 beside another", { max_tokens: 1, n_predict: -1 }, {}],
    ["llama.cpp's own cap alone, which no other server obeys", { n_predict: 5 }, {}],
    ['W3 answers to choose from', { n: 2, best_of: 5 }, { choices: 5 }],
    ["L3 llama.cpp's own number of answers", { n_cmpl: 400 }, { choices: 400 }],
    ['nulls', { max_tokens: null, n: null, stream_options: null }, {}],
    ['several answers', { n: 3 }, { choices: 3 }],
    ['zero answers', { n: 0 }, {}],
    ['usage wanted', { stream_options: { include_usage: true } }, { wantsUsage: true }],
    ['usage not wanted', { stream_options: { include_usage: false } }, {}],
    ['usage wanted in no known way', { stream_options: { include_usage: 'true' } }, {}],
  ])('%s', (_, fields, declares) => {
    expect(requestFields({ ...ASK, ...fields }, chatCompletions)).toEqual({
      model: 'llama',
      stream: false,
      ...NOTHING,
      ...declares,
    })
  })
})
