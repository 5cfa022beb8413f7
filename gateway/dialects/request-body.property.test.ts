import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonBody } from './json-body.ts'
import { bytesFor, requestBody } from './request-body.ts'

const upstreamBody = (body: JsonBody, upstreamModel: string, asksUsage = false): Buffer =>
  bytesFor(requestBody(body, String(body.value.model), asksUsage), upstreamModel, { asksUsage })

/** Keys and strings that try to make two parsers read two models. */
const hostile = fc.constantFrom(
  'model',
  'mod\u0065l',
  'Model',
  'MODEL',
  '"model"',
  'a"model',
  'model"',
  '\\"model\\"',
  'model\\u0065',
  '\\u006dodel',
  'stream_options',
  'str\u0065am_options',
  '"stream_options":{}',
  'x',
  '',
  '__proto__',
  'toJSON',
  'message',
)
/** Few names, so that equal ones meet. */
const name = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('a', 'b') },
  fc.constantFrom('model', 'org/Llama-3', 'é"\\'),
  fc.string({ maxLength: 8 }),
)
const leaf = fc.oneof({ weight: 3, arbitrary: name }, hostile, fc.string({ maxLength: 6 }), fc.integer(), fc.boolean(), fc.constant(null))
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(hostile, tie('value')), { maxLength: 3 }).map(asEntries),
  ),
}))

/** An object as a list of entries, so that keys can occur twice. */
class Entries {
  readonly entries: ReadonlyArray<readonly [string, unknown]>
  constructor(entries: ReadonlyArray<readonly [string, unknown]>) {
    this.entries = entries
  }
}
function asEntries(entries: ReadonlyArray<readonly [string, unknown]>): Entries {
  return new Entries(entries)
}

const body = fc.record({
  entries: fc.array(fc.tuple(hostile, value), { maxLength: 5 }),
  model: name,
  at: fc.nat(5),
  spelling: fc.array(fc.nat(3), { minLength: 64, maxLength: 64 }),
})

/** Writes JSON with escaped letters and with space in any place; `spelling` decides. */
function write(node: unknown, spelling: readonly number[]): string {
  let turn = 0
  const next = (): number => spelling[turn++ % spelling.length] ?? 0
  const text = (plain: string): string => {
    const json = JSON.stringify(plain)
    if (next() > 0 || plain === '' || json !== `"${plain}"`) return json
    const at = next() % plain.length
    const code = plain.charCodeAt(at).toString(16)
    return `"${plain.slice(0, at)}\\u${(next() > 1 ? code.toUpperCase() : code).padStart(4, '0')}${plain.slice(at + 1)}"`
  }
  const space = (): string => ['', '', ' ', '\n\t'][next()] ?? ''
  const any = (one: unknown): string => {
    if (typeof one === 'string') return text(one)
    if (Array.isArray(one)) return `[${one.map(any).join(',')}]`
    if (one instanceof Entries)
      return `{${one.entries.map(([key, inner]) => `${space()}${text(key)}${space()}:${space()}${any(inner)}`).join(',')}${space()}}`
    return JSON.stringify(one)
  }
  return any(node)
}

/** One token of JSON: punctuation, a string, or any other scalar. */
const TOKENS = /[{}[\]:,]|"(?:[^"\\]|\\.)*"|[^\s{}[\]:,"]+/g

/** Reads the top-level entries of a JSON object in order, duplicates included, as a streaming parser does. */
function topLevel(json: string): Array<[key: string, value: unknown]> {
  const found: Array<[string, unknown]> = []
  let depth = 0
  let entry = ''
  for (const [token] of json.matchAll(TOKENS)) {
    if ('}]'.includes(token)) depth--
    if (depth === 0 || (depth === 1 && token === ',')) {
      const pair = Object.entries(JSON.parse(entry === '' ? '{}' : `{${entry}}`) as Record<string, unknown>)
      found.push(...pair)
      entry = ''
    } else entry += token
    if ('{['.includes(token)) depth++
  }
  return found
}

const READERS: Readonly<Record<string, (json: string, field: string) => unknown>> = {
  'JSON.parse': (json, field) => (JSON.parse(json) as Record<string, unknown>)[field],
  'the first key wins': (json, field) => topLevel(json).find(([key]) => key === field)?.[1],
  'the last key wins': (json, field) => topLevel(json).findLast(([key]) => key === field)?.[1],
  'case does not matter, first': (json, field) => topLevel(json).find(([key]) => key.toLowerCase() === field)?.[1],
  'case does not matter, last': (json, field) => topLevel(json).findLast(([key]) => key.toLowerCase() === field)?.[1],
}

describe('the model that a backend reads', () => {
  it('is the authorised one for every kind of parser, with and without another name upstream', () => {
    fc.assert(
      fc.property(body, fc.option(name, { nil: undefined }), ({ entries, model, at, spelling }, upstream) => {
        const all = entries.toSpliced(at, 0, ['model', model])
        const text = write(new Entries(all), spelling)
        const parsed = JSON.parse(text) as Record<string, unknown>
        fc.pre(typeof parsed.model === 'string')
        fc.pre(!Object.keys(parsed).some((key) => key !== 'model' && key.toLowerCase() === 'model')) // row 11 refuses these before
        const authorised = upstream ?? String(parsed.model)
        const sent = upstreamBody({ bytes: Buffer.from(text), text, value: parsed }, authorised).toString()
        for (const [reader, read] of Object.entries(READERS)) expect(read(sent, 'model'), `${reader}: ${sent}`).toBe(authorised)
        expect(JSON.parse(sent)).toEqual({ ...parsed, model: authorised })
        expectAsking({ bytes: Buffer.from(text), text, value: parsed }, authorised)
      }),
      { numRuns: 3000 },
    )
  })

  it('an ordinary body is forwarded byte for byte', () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string(), { maxLength: 4 }), (model, texts) => {
        fc.pre(!texts.includes('model') && model !== 'model')
        const text = JSON.stringify({ temperature: 1, model, messages: texts.map((content) => ({ role: 'user', content })) }, null, 1)
        fc.pre(!/\\u00[4-7]/.test(text) && !texts.some((one) => one.endsWith('"model')) && !model.endsWith('"model'))
        const bytes = Buffer.from(text)
        expect(upstreamBody({ bytes, text, value: JSON.parse(text) }, model)).toBe(bytes)
      }),
    )
  })
})

/** Any parser of a server reads the same model and the request for usage; everything else is unchanged. */
function expectAsking(body: JsonBody, authorised: string): void {
  const sent = upstreamBody(body, authorised, true).toString()
  const { stream_options: options } = body.value
  const isOption = options === undefined || options === null || (typeof options === 'object' && !Array.isArray(options))
  const asked = isOption ? { ...options, include_usage: true } : options
  for (const [reader, read] of Object.entries(READERS)) {
    expect(read(sent, 'model'), `${reader}: ${sent}`).toBe(authorised)
    if (isOption) expect(read(sent, 'stream_options'), `${reader}: ${sent}`).toEqual(asked)
  }
  expect(JSON.parse(sent)).toEqual({ ...body.value, model: authorised, stream_options: asked })
}
