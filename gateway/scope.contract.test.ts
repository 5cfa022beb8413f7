/** On every route, each body of a long list either reaches a model server with the authorised model alone, for every parser, or is refused. */
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '#platform/clock.ts'
import { type FrontGateway, modelRecord, startFront } from '../test/support/front-gateway.ts'
import { modelsRead, namesRead } from '../test/support/model-readers.ts'
import { FORM_NAMES, SCOPE_BODIES, type ScopeBody } from '../test/support/scope-bodies.ts'
import { DIALECTS } from './dialects/dialects.ts'
import { DISTURBING, MODEL_CHOOSING } from './dialects/request-shape.ts'
import { FreeCalls } from './limits/free-calls.ts'

/** Bodies of the reviews that this list stands for. */
const FEWEST = 474
const REFUSED_NAMES = new Set([...MODEL_CHOOSING, ...DISTURBING])
const FORM_TYPE = 'multipart/form-data; boundary=B'
const AT_ONCE = 16
const paths = [...DIALECTS.values()].flatMap((dialect) => [dialect.path, ...(dialect.otherPaths ?? [])].map((path) => ({ path, dialect })))

let front: FrontGateway
let key: string

beforeAll(async () => {
  front = await startFront({
    models: [modelRecord('mine'), modelRecord('theirs')],
    app: { freeCalls: new FreeCalls(1_000_000, systemClock) },
  })
  key = front.issue({ models: [['mine']] })
})
afterAll(() => front.stop())

/** Sends a body as it is, with these headers alone. */
function send(path: string, { bytes, headers = {} }: ScopeBody, type = 'application/json'): Promise<number> {
  const sent = { authorization: `Bearer ${key}`, 'content-type': type, 'content-length': String(bytes.length), ...headers }
  return new Promise((resolve, reject) => {
    const call = request({ ...{ port: front.port, path, method: 'POST', agent: false }, headers: sent }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
    })
    call.on('error', reject).end(bytes)
  })
}

/** @returns how often each status was answered */
async function sendAll(path: string, bodies: readonly ScopeBody[], type?: string): Promise<Map<number, number>> {
  front.jobs.length = 0
  const statuses = new Map<number, number>()
  const left = [...bodies]
  const sender = async (): Promise<void> => {
    for (let body = left.pop(); body !== undefined; body = left.pop()) {
      const status = await send(path, body, type)
      expect([200, 400, 403, 404, 415], `${path}: ${body.tries}`).toContain(status)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sender))
  expect(front.jobs).toHaveLength(statuses.get(200) ?? 0)
  return statuses
}

const folded = (name: string): string => name.toUpperCase().toLowerCase()

describe.each(paths.filter(({ dialect }) => !dialect.isForm))('POST $path', ({ path }) => {
  test(`of ${SCOPE_BODIES.length} bodies forwards none that names another model, or a field that chooses one, to any parser`, async () => {
    expect(SCOPE_BODIES.length).toBeGreaterThanOrEqual(FEWEST)
    const statuses = await sendAll(path, SCOPE_BODIES)
    for (const { body } of front.jobs) {
      const bytes = body?.bytes ?? Buffer.alloc(0)
      expect(new Set(modelsRead(bytes)), bytes.toString('utf8', 0, 500)).toEqual(new Set(['mine']))
      expect(
        namesRead(bytes)
          .map(folded)
          .filter((name) => REFUSED_NAMES.has(name)),
      ).toEqual([])
    }
    for (const status of [200, 400, 403, 415]) expect(statuses.get(status) ?? 0, `answers with ${status}`).toBeGreaterThan(5)
  })
})

describe.each(paths.filter(({ dialect }) => dialect.isForm))('POST $path, a form', ({ path }) => {
  test(`forwards none of the ${SCOPE_BODIES.length} bodies of JSON, whatever type they claim`, async () => {
    for (const type of ['application/json', FORM_TYPE]) {
      const statuses = await sendAll(path, SCOPE_BODIES, type)
      expect(statuses.get(200), type).toBeUndefined()
    }
  })

  const part = (name: string, value: string): string => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const FILE = '--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n'
  const mine = part('model', 'mine')
  const forms = FORM_NAMES.flatMap((name) =>
    [mine + part(name, 'theirs') + FILE, part(name, 'theirs') + mine + FILE, FILE + part(name, 'theirs')].map((fields): ScopeBody => ({
      ...{ tries: `the field ${name}`, bytes: Buffer.from(`${fields}--B--\r\n`) },
    })),
  )

  test(`of ${forms.length} forms forwards none that names another model, or a field that chooses one, to any parser`, async () => {
    expect(forms.length).toBeGreaterThanOrEqual(FEWEST)
    await sendAll(path, [...forms, { tries: 'a good form', bytes: Buffer.from(`${mine}${FILE}--B--\r\n`) }], FORM_TYPE)
    expect(front.jobs.length).toBeGreaterThan(0)
    for (const { body } of front.jobs) {
      const bytes = new Uint8Array(body?.bytes ?? [])
      const fields = [...(await new Response(bytes, { headers: { 'content-type': FORM_TYPE } }).formData())]
      const stems = fields.map(([name, value]) => [folded(name.replace(/\[.*/, '')), value] as const)
      const shown = Buffer.from(bytes).toString()
      expect(new Set(stems.flatMap(([name, value]) => (name === 'model' ? [value] : []))), shown).toEqual(new Set(['mine']))
      expect(
        stems.filter(([name]) => REFUSED_NAMES.has(name)),
        shown,
      ).toEqual([])
    }
  })
})
