/** Bodies that try to make a model server read another model than the gateway has authorised: `theirs` instead of `mine`. */
import { DISTURBING, MODEL_CHOOSING } from '../../gateway/dialects/request-shape.ts'

export interface ScopeBody {
  /** What it tries. */
  readonly tries: string
  readonly bytes: Buffer
  readonly headers?: Readonly<Record<string, string>>
}

/** What each of the routes needs besides the model. */
export const PROMPTS =
  '"messages":[{"role":"user","content":"{\\"model\\":\\"theirs\\"}"}],"prompt":"x","input":"x","query":"x","documents":["x"]'

const escaped = (letter: string): string => `\\u00${letter.charCodeAt(0).toString(16)}`
const LETTERS = Array.from('model')
const replaced = (at: number, letter: string): string => LETTERS.map((own, index) => (index === at ? letter : own)).join('')
const CASES = Array.from({ length: 32 }, (_, bits) => LETTERS.map((own, at) => ((bits >> at) & 1 ? own.toUpperCase() : own)).join(''))
/** Names that some parser may take for `model`, as they stand in JSON between quotes. */
const NAMES = [
  ...CASES,
  ...LETTERS.map((own, at) => replaced(at, escaped(own))),
  ...LETTERS.map((own, at) => replaced(at, String.fromCharCode(own.charCodeAt(0) + 0xfee0))),
  ...['\\u0000', ' ', '\\t', '\\n', '\u00A0', '\u200B', '\u00AD', '\\uFEFF', '[]', '.x', '/'].flatMap((odd) => [
    `model${odd}`,
    `${odd}model`,
  ]),
  ...[
    'model\\u0000x',
    'mode\u017F',
    'm\u00F3del',
    'mo\\u0064\\u0065l',
    'models',
    'model_id',
    'model_name',
    'engine',
    'deployment',
    '$model',
  ],
]
const VALUES = [
  ...[
    '"theirs"',
    '"Mine"',
    '"MINE"',
    '"mine "',
    '" mine"',
    '"mine\\u0000"',
    '"mine\\u0000theirs"',
    '"theirs\\u0000"',
    '"m\\u0069ne"',
    '"mine\\n"',
  ],
  ...[
    '"mine,theirs"',
    '"mine/theirs"',
    '"mine:theirs"',
    '"../theirs"',
    '"mine?model=theirs"',
    '"mine#theirs"',
    '"*"',
    '"m*"',
    '""',
    '"\\ud800"',
  ],
  ...[
    '["theirs"]',
    '["mine","theirs"]',
    '[]',
    '{}',
    '{"model":"theirs"}',
    '{"id":"theirs"}',
    'null',
    'true',
    'false',
    '0',
    '1',
    'NaN',
    '1e400',
  ],
]
const AROUND: ReadonlyArray<readonly [before: string, after: string]> = [
  ...['\uFEFF', '\u00A0', '[', '/**/', '//\n', '\u0000', '{"model":"theirs"}', '{"model":"theirs"}\n', ")]}',\n", 'data: '].map(
    (b) => [b, ''] as const,
  ),
  ...[
    ' {"model":"theirs"}',
    '\n{"model":"theirs"}',
    ',',
    ';',
    '// x',
    '/* x */',
    '\u0000',
    ']',
    '}',
    '\u2028',
    '\u0000{"model":"theirs"}',
  ].map((a) => ['', a] as const),
]
const SCALARS = [
  'NaN',
  'Infinity',
  '-Infinity',
  '1e400',
  '-1e400',
  '01',
  '+1',
  '0x1',
  '.5',
  '1.',
  '-0',
  "'x'",
  'undefined',
  '1_000',
  '9'.repeat(400),
]
const PROTOTYPES = [
  '"__proto__":{"model":"theirs"}',
  '"constructor":{"prototype":{"model":"theirs"}}',
  '"prototype":{"model":"theirs"}',
  '"toJSON":"theirs"',
]
const DEPTHS = [199, 201, 5_000, 100_000, 1_000_000]
const TYPES = [
  ...[
    'application/json; charset=utf-16',
    'application/json; charset=utf-7',
    'application/json;charset=utf-32',
    'text/plain',
    'text/html',
    '',
  ],
  ...['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'multipart/mixed; boundary=x', 'application/x-ndjson'],
]
const ENCODINGS = ['gzip', 'deflate', 'br', 'zstd', 'identity, gzip', 'utf-7', 'identity']

const json = (...entries: readonly string[]): string => `{${[...entries, PROMPTS].join(',')}}`
const MINE = '"model":"mine"'
const THEIRS = '"model":"theirs"'
const text = (tries: string, body: string, headers?: ScopeBody['headers']): ScopeBody => ({
  ...{ tries, bytes: Buffer.from(body) },
  ...(headers && { headers }),
})

/** Each field by which servers choose models or disturb others, as a parser may read it. */
function refusedFields(): ScopeBody[] {
  return [...MODEL_CHOOSING, ...DISTURBING].flatMap((name) => {
    const folding = name.replace(/s/, '\u017F').replace(/k/, '\u212A')
    const spellings = [...new Set([name, name.toUpperCase(), folding, replacedFirst(name)])]
    const forms = [`"${name}":null`, `"${name}":"theirs","${name}":null`]
    return [...spellings.map((one) => `"${one}":["theirs"]`), ...forms].map((entry) => text(`the field ${name}`, json(MINE, entry)))
  })
}

const replacedFirst = (name: string): string => escaped(name.charAt(0)) + name.slice(1)

/** The same text in other bytes. */
function encodings(): ScopeBody[] {
  const utf16 = (body: string): Buffer => Buffer.from(body, 'utf16le')
  const utf32 = (body: string): Buffer => Buffer.concat(Array.from(body, (letter) => Buffer.from([letter.charCodeAt(0), 0, 0, 0])))
  const mark = Buffer.from('\uFEFF', 'utf16le')
  const good = json(MINE)
  const hostile = ['\xC1\xADodel', '\xE0\x81\xADodel', '\xED\xA0\x80model', 'model\xFF', '\xFEmodel', 'model\xC0\x80'].map((name) =>
    Buffer.from(`{"model":"mine","${name}":"theirs",${PROMPTS}}`, 'latin1'),
  )
  const whole = [utf16(good), utf16(good).swap16(), Buffer.concat([mark, utf16(good)]), utf32(good), Buffer.from(`+AHs-${good}`)]
  const mixed = Buffer.concat([Buffer.from(good), utf16(json(THEIRS))])
  return [...hostile, ...whole, mixed].map((bytes) => ({ tries: 'another encoding', bytes }))
}

function depths(): ScopeBody[] {
  return DEPTHS.flatMap((depth) => [
    text(`arrays of depth ${depth}`, json(MINE, `"x":${'['.repeat(depth)}${']'.repeat(depth)}`)),
    text(`objects of depth ${depth}`, json(MINE, `"x":${'{"model":'.repeat(depth)}"theirs"${'}'.repeat(depth)}`)),
    text(`arrays of depth ${depth} without an end`, `{${MINE},"x":${'['.repeat(depth)}`),
  ])
}

/** All of them; each is sent to every route. */
export const SCOPE_BODIES: readonly ScopeBody[] = [
  text('a good body', json(MINE)),
  text('another model', json(THEIRS)),
  ...NAMES.flatMap((name) => [
    text(`the name ${name} behind`, json(MINE, `"${name}":"theirs"`)),
    text(`the name ${name} before`, json(`"${name}":"theirs"`, MINE)),
    text(`the name ${name} alone`, json(`"${name}":"theirs"`)),
  ]),
  ...VALUES.flatMap((value) => [
    text(`the value ${value}`, json(`"model":${value}`)),
    text(`the value ${value} behind`, json(MINE, `"model":${value}`)),
    text(`the value ${value} before`, json(`"model":${value}`, MINE)),
  ]),
  ...AROUND.map(([before, after]) => text('a text around it', before + json(MINE) + after)),
  ...SCALARS.flatMap((scalar) => [
    text(`the scalar ${scalar}`, json(MINE, `"x":${scalar}`)),
    text(`the scalar ${scalar}`, json(`"x":${scalar}`, MINE)),
  ]),
  ...PROTOTYPES.flatMap((entry) => [text('a prototype', json(MINE, entry)), text('a prototype', json(entry))]),
  ...TYPES.flatMap((type) => [MINE, THEIRS].map((entry) => text(`the type ${type}`, json(entry), { 'content-type': type }))),
  ...ENCODINGS.map((encoding) => text(`the encoding ${encoding}`, json(MINE), { 'content-encoding': encoding })),
  ...encodings(),
  ...depths(),
  ...refusedFields(),
]

/** The names of fields of a form that try the same, with a good field in front or behind; a name is written as it is. */
export const FORM_NAMES: readonly string[] = [
  ...CASES,
  ...[
    'model[]',
    'model[0]',
    'model[x]',
    'MODEL[]',
    'model.x',
    '[model]',
    'model ',
    ' model',
    'model\0',
    'model\0x',
    'model"; name="x',
    'mod\\el',
    'm\u00F3del',
  ],
  ...['model%00', 'model\r\nX: y', 'model;', 'models', 'model_id', '"model"', "model'", 'file[model]'],
  ...[...MODEL_CHOOSING, ...DISTURBING].flatMap((name) => [
    name,
    name.toUpperCase(),
    `${name}[]`,
    `${name}[model]`,
    name.replace(/s/, '\u017F'),
  ]),
]
