/** Whatever a caller sends, no model server reads another model than the one that was authorised, and no request hides in another one. */
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '#platform/clock.ts'
import { type FrontGateway, modelRecord, startFront } from '../test/support/front-gateway.ts'
import { DIALECTS } from './dialects/dialects.ts'
import { readForm } from './dialects/form-body.ts'
import { FreeCalls } from './limits/free-calls.ts'
import { modelsRead } from '../test/support/model-readers.ts'
import { PROMPTS } from '../test/support/scope-bodies.ts'
import { SeededRandom } from '../test/support/seeded-random.ts'

const SEED = Number(process.env.SCOPE_SEED ?? Date.now() % 1_000_000)
const BODIES = Number(process.env.SCOPE_BODIES ?? 6_000)
const FRAMINGS = Number(process.env.SCOPE_FRAMINGS ?? 4_000)
const AT_ONCE = 20
const CHAT = '/v1/chat/completions'
const PATHS = [...DIALECTS.values()].filter(({ isForm }) => !isForm).flatMap(({ path, otherPaths = [] }) => [path, ...otherPaths]) as [
  string,
  ...string[],
]

let front: FrontGateway
let key: string

beforeAll(async () => {
  const freeCalls = new FreeCalls(BODIES, systemClock)
  front = await startFront({ models: [modelRecord('mine'), modelRecord('theirs')], app: { freeCalls } })
  key = front.issue({ models: [['mine']] })
})
afterAll(() => front.stop())

/**
 * Sends bytes and reads until the connection ends. @returns the status of each answer
 * @param answers the client closes its side after this many: a server drops the answers of a client that has left
 */
async function exchange(bytes: Buffer, answers = 0): Promise<number[]> {
  const socket = connect(front.port, '127.0.0.1')
  const seen: Buffer[] = []
  const statuses = (): number[] =>
    Array.from(
      Buffer.concat(seen)
        .toString('latin1')
        .matchAll(/HTTP\/1\.1 (\d+) /g),
      ([, status]) => Number(status),
    )
  socket.on('data', (chunk) => {
    seen.push(chunk)
    if (answers > 0 && statuses().length >= answers) socket.end()
  })
  const ended = new Promise((resolve) => socket.on('close', resolve).on('error', () => undefined))
  if (answers > 0) socket.write(bytes)
  else socket.end(bytes)
  await ended
  return statuses()
}

async function inParallel(count: number, one: (random: SeededRandom) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let run = next++; run < count; run = next++) await one(new SeededRandom(SEED * 65_537 + run))
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

// --- bodies

const KEYS = [
  ...['"model"', '"model"', '"model"', '"mod\\u0065l"', '"\\u006dodel"', '"Model"', '"MODEL"', '"model\\u0000"', '"model\\u0000x"'],
  ...['"\\u0000model"', '"model "', '"ｍodel"', '"mode\u017F"', '"models"', '"model_id"', '"engine"', '"__proto__"', '"x"'],
] as const
const VALUES = [
  ...['"mine"', '"mine"', '"mine"', '"theirs"', '"theirs"', '"m\\u0069ne"', '"mine\\u0000theirs"', '"theirs\\u0000"', '"Mine"', '"mine "'],
  ...['["theirs"]', '{"model":"theirs"}', 'null', '1', 'NaN', '1e400', '""', '"\\ud800"'],
] as const
const BEFORE = ['', '', '', ' \n\t', '\uFEFF', '\u00A0', '[', '/**/', '\u0000', '{"model":"theirs"}'] as const
const AFTER = ['', '', '', '\n', ' {"model":"theirs"}', ',', '// x', '\u0000', ']', '\u2028'] as const
const TYPES = [
  'application/json',
  'application/json; charset=utf-16',
  'text/plain',
  '',
  'application/x-www-form-urlencoded',
  'multipart/x',
] as const
const ENCODINGS = ['', '', '', 'identity', 'gzip', 'utf-7'] as const
const CHARSETS = ['utf8', 'utf8', 'utf8', 'utf8', 'latin1', 'utf16le'] as const

/** The usual form most of the time: with an odd one in every place, everything would be refused for the first of them. */
const oneOf = (random: SeededRandom, forms: readonly [string, ...string[]]): string => (random.chance(0.6) ? forms[0] : random.pick(forms))

function randomBody(random: SeededRandom): Buffer {
  const entries = Array.from(
    { length: 1 + random.below(3) },
    () => `${oneOf(random, KEYS)}${random.pick(['', ' '])}:${random.pick(VALUES)}`,
  )
  entries.splice(random.below(entries.length + 1), 0, PROMPTS)
  const text = `${oneOf(random, BEFORE)}{${entries.join(random.pick([',', ' , ', ',\n']))}}${oneOf(random, AFTER)}`
  return Buffer.from(text, oneOf(random, CHARSETS) as BufferEncoding)
}

test(`${BODIES} random bodies: the forwarded body names the authorised model to every parser`, async () => {
  process.stdout.write(`scope: seed ${SEED}, ${BODIES} bodies, ${FRAMINGS} framings\n`)
  const statuses = new Map<number, number>()
  await inParallel(BODIES, async (random) => {
    const body = randomBody(random)
    const [type, encoding] = [oneOf(random, TYPES), oneOf(random, ENCODINGS)]
    const fields = [
      `POST ${random.pick(PATHS)} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n`,
      type === '' ? '' : `content-type: ${type}\r\n`,
      encoding === '' ? '' : `content-encoding: ${encoding}\r\n`,
    ]
    const [status = 0] = await exchange(Buffer.concat([Buffer.from(`${fields.join('')}\r\n`), body]), 1)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    expect([200, 400, 403, 404, 415], body.toString('latin1')).toContain(status)
  })
  for (const { body } of front.jobs) {
    const bytes = body?.bytes ?? Buffer.alloc(0)
    expect(new Set(modelsRead(bytes)), bytes.toString('latin1')).toEqual(new Set(['mine']))
    expect((JSON.parse(bytes.toString('utf8')) as { model: unknown }).model).toBe('mine')
  }
  expect(front.jobs.length).toBe(statuses.get(200))
  for (const status of [200, 400, 403, 415]) expect(statuses.get(status) ?? 0, `answers with ${status}`).toBeGreaterThan(BODIES / 100)
})

// --- forms

const FORM_NAMES = ['model', 'model', 'model', 'prompt', 'Model', 'model"; x="', 'mod\\el', 'model\r\n'] as const
const FORM_HEADS = [
  '',
  '',
  '',
  '; filename="a"',
  "; filename*=utf-8''a",
  '; name="model"',
  '\r\nContent-Type: text/plain',
  '\nX: y',
] as const
const FORM_TEXTS = ['mine', 'mine', 'theirs', '', 'x\n--B\n', 'x\r\n--B', '\r\n--B--\r\n', '\r\n--B \r\n', '--B\r\n'] as const
const FORM_ENDS = ['--B--\r\n', '--B--\r\n', '--B--', '', '\r\n--B--x', '--B--\r\n--B\r\n'] as const
const FORM_STARTS = ['', '', '', '\r\n', 'x\r\n', '\n'] as const

function randomForm(random: SeededRandom): Buffer {
  const part = (): string =>
    `--B\r\nContent-Disposition: form-data; name="${oneOf(random, FORM_NAMES)}"${oneOf(random, FORM_HEADS)}\r\n\r\n${oneOf(random, FORM_TEXTS)}\r\n`
  const parts = Array.from({ length: 1 + random.below(3) }, part)
  return Buffer.from(oneOf(random, FORM_STARTS) + parts.join('') + oneOf(random, FORM_ENDS))
}

test(`${BODIES} random forms: a form that is taken has the same fields for another parser`, async () => {
  let taken = 0
  await inParallel(BODIES, async (random) => {
    const bytes = randomForm(random)
    const form = readForm(bytes, 'B')
    if ('problem' in form) return
    taken += 1
    const other = await new Response(new Uint8Array(bytes), { headers: { 'content-type': form.contentType } }).formData()
    const texts = form.fields.map(({ name, text }) => [name, text])
    expect(
      [...other].map(([name, value]) => [name, typeof value === 'string' ? value : undefined]),
      bytes.toString(),
    ).toEqual(texts)
  })
  expect(taken).toBeGreaterThan(BODIES / 20)
})

// --- framings

const ask = (content: string): string => JSON.stringify({ model: 'mine', messages: [{ role: 'user', content }] })
const FIRST = ask('first')
const HIDDEN = ask('hidden')
const hidden = (): string =>
  `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`

const LENGTHS = ['=', '=', '=', '=, =', '+', '-', '0x', '-1', '= ', '\t=', '0=', '99', '', '0'] as const
const CODINGS = [
  'chunked',
  'Chunked',
  'chunked, identity',
  'identity',
  'xchunked',
  'chunked, chunked',
  'gzip, chunked',
  '\tchunked',
  '',
] as const
const COLONS = [': ', ':', ' : ', '\t: ', ':\r\n '] as const
const BREAKS = ['\r\n', '\r\n', '\r\n', '\r\n', '\n', '\r', '\r\r\n'] as const
const SIZES = ['=', '=', '0=', '=;x=y', '= ', '0x=', '-=', '=\n', ''] as const

const GOOD_LENGTHS: ReadonlySet<string> = new Set(['=', '= ', '\t=', '0='])
const GOOD_CODINGS: ReadonlySet<string> = new Set(['chunked', 'Chunked', '\tchunked', 'gzip, chunked'])
const GOOD_SIZES: ReadonlySet<string> = new Set(['=', '0=', '=;x=y'])
const GOOD_COLONS: ReadonlySet<string> = new Set([': ', ':'])

interface Framing {
  readonly bytes: Buffer
  /** RFC 9112 leaves one reading alone: a length, or chunks, and everything well formed. */
  readonly isClean: boolean
}

/** The replacement for `=`: the right number of bytes. */
const filled = (form: string, size: string): string => form.replaceAll('=', size)

function randomFraming(random: SeededRandom): Framing {
  const hasLength = random.chance(0.7)
  const hasCoding = !hasLength || random.chance(0.3)
  const [length, coding, colon, lineBreak, size] = [LENGTHS, CODINGS, COLONS, BREAKS, SIZES].map((forms) => oneOf(random, forms)) as [
    string,
    string,
    string,
    string,
    string,
  ]
  const fields = [`POST ${CHAT} HTTP/1.1`, 'host: x', `authorization: Bearer ${key}`]
  if (hasLength) fields.push(`content-length${colon}${filled(length, String(FIRST.length))}`)
  if (hasCoding) fields.push(`transfer-encoding${colon}${coding}`)
  const chunks = `${filled(size, FIRST.length.toString(16))}\r\n${FIRST}\r\n0\r\n\r\n`
  const head = fields.join(lineBreak) + lineBreak + lineBreak
  const isGoodBody = hasCoding ? !hasLength && GOOD_CODINGS.has(coding) && GOOD_SIZES.has(size) : GOOD_LENGTHS.has(length)
  const isClean = isGoodBody && GOOD_COLONS.has(colon) && lineBreak === '\r\n'
  return { bytes: Buffer.from(`${head}${hasCoding ? chunks : FIRST}${hidden()}`), isClean }
}

test(`${FRAMINGS} random framings: a request is read as RFC 9112 says, or refused, and hides no other one`, async () => {
  front.jobs.length = 0
  let clean = 0
  await inParallel(FRAMINGS, async (random) => {
    const { bytes, isClean } = randomFraming(random)
    const shown = bytes.toString('latin1').replaceAll(key, 'KEY')
    const statuses = await exchange(bytes, isClean ? 2 : 0)
    if (isClean) clean += 1
    if (isClean) expect(statuses, shown).toEqual([200, 200])
    else expect(statuses.filter((status) => status === 200).length, shown).toBeLessThan(2)
  })
  const contents = front.jobs.map(({ body }) => body?.bytes.toString('utf8'))
  expect(contents.filter((one) => one === HIDDEN)).toHaveLength(clean)
  expect(new Set(contents)).toEqual(new Set([FIRST, HIDDEN]))
  expect(clean).toBeGreaterThan(FRAMINGS / 20)
})
