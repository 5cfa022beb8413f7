import { execFileSync } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { turnsDuring } from '../../test/support/turns-during.ts'
import { GatewayError } from '../errors.ts'
import { type Clock, systemClock } from '#platform/clock.ts'
import { chatCompletions } from './chat-completions.ts'
import { messages } from './messages.ts'
import { DIALECTS } from './dialects.ts'
import { BodyReader, type BodyResult } from './body-reader.ts'
import { readRequest } from './read-request.ts'
import { wholeAnswer } from './whole-answer.ts'
import { translateBody } from './translation/translate-body.ts'

const MIB = 2 ** 20
/** Only catches a process that never ends, on a busy machine too, ms. */
const HANG_MS = 120_000
const AT_ONCE = MIB / 4
const ASK = '"messages":[{"role":"user","content":"hi"}]'
/** A worker that reports its start, and then never answers. */
const SILENT = new URL(
  `data:text/javascript,import{parentPort}from'node:worker_threads';parentPort.on('message',()=>0).postMessage('ready')`,
)
const FULL = new URL(
  `data:text/javascript,import{parentPort}from'node:worker_threads';parentPort.on('message',()=>{for(let all;;)all={all}}).postMessage('ready')`,
)

/** For a test that ends its worker: a worker of its own. */
let reader: BodyReader
let workers: Worker[]
let logged: string[]
const started = (worker: Worker): void => void workers.push(worker)

beforeEach(() => {
  workers = []
  logged = []
  process.on('worker', started)
})
afterEach(async () => {
  process.off('worker', started)
  if (reader !== common) await reader.stop()
})

/** A shared worker for the other tests, because a start is slow. */
let common: BodyReader
beforeAll(() => (common = makeReader({ clock: systemClock })).start())
afterAll(() => common.stop())

function makeReader(change: { clock?: Clock; program?: URL; maxBodyBytes?: number } = {}): BodyReader {
  const write = (fields: unknown, message?: string): void => void logged.push(`${message}: ${JSON.stringify(fields)}`)
  const log = { debug: write, info: write, warn: write, error: write }
  reader = new BodyReader({ log, clock: new ManualClock(), maxBodyBytes: 32 * MIB, ...change })
  return reader
}

/** An object of this many bytes that begins with these fields. */
function body(bytes = MIB, fields = `"model":"llama",${ASK}`): Buffer {
  const head = `{${fields},"pad":"`
  return Buffer.from(`${head}${'x'.repeat(bytes - head.length - 2)}"}`)
}

const read = async (bytes: Buffer, by = reader): Promise<BodyResult> => by.read(bytes, chatCompletions, new EventEmitter())

/** The parts of a result that the tests compare. */
function shown(result: BodyResult): unknown {
  if (!(result instanceof GatewayError))
    return result && { ...result, body: { ...result.body, bytes: result.body.bytes.toString('latin1') } }
  const { row, params, message, cause } = result
  return { row: row.id, params, message, cause }
}

describe('a large body', () => {
  const pad = `"pad":"${'ab'.repeat(AT_ONCE)}"`
  const cases: readonly [string, string | Buffer][] = [
    ['unchanged', `{"model":"llama",${ASK},${pad}}`],
    [
      'unchanged, a stream, with characters of several bytes before the model',
      `{"note":"日本語 😀","stream":true,${ASK},"model":"模型",${pad}}`,
    ],
    ['serialised again for a second model', `{"model":"other","model":"llama",${ASK},${pad}}`],
    ['serialised again, and short without its blanks', `{"model":"other","model":"llama",${ASK}${' '.repeat(AT_ONCE)}}`],
    ['asking for usage within its own options', `{"model":"llama","stream":true,"max_tokens":7,"stream_options":{},${ASK},${pad}}`],
    ['row 10: not UTF-8', Buffer.concat([Buffer.from(`{"model":"llama",${ASK},${pad},"x":"`), Buffer.from([0xff]), Buffer.from('"}')])],
    ['row 10: not JSON', `{"model":"llama",${ASK},${pad}`],
    ['row 10: too many parts', `{"model":"llama",${ASK},"x":[0${',0'.repeat(200_000)}]}`],
    ['row 11: no model', `{${ASK},${pad}}`],
    ['row 11: a key that differs only in case', `{"model":"llama","Model":"other",${ASK},${pad}}`],
    ['row 11: too deep', `{"model":"llama",${ASK},"x":${'['.repeat(202)}${']'.repeat(202)},${pad}}`],
    ['row 42: a field that chooses another model', `{"model":"llama","models":["other"],${ASK},${pad}}`],
  ]
  const both = [...DIALECTS.values()].flatMap((dialect) =>
    cases.map(([name, text]) => [name, dialect.path, dialect, Buffer.from(text)] as const),
  )

  test.each(both)('%s of %s: the worker returns the same result as a direct read', async (_, path, dialect, bytes) => {
    expect(bytes.length).toBeGreaterThan(AT_ONCE)
    const atOnce = readRequest(bytes, dialect, { isMetered: true })
    const sent = Buffer.from(bytes)
    expect(shown(await common.read(sent, dialect, new EventEmitter(), { isMetered: true })), path).toEqual(shown(atOnce))
    expect(sent.length).toBe(0) // it went to the worker, and was not copied
    expect([workers, logged]).toEqual([[], []]) // and no worker was started
  })

  test.each([
    ['a larger ArrayBuffer', () => new ArrayBuffer(3 * MIB)],
    ['memory that threads share', () => new SharedArrayBuffer(MIB)],
  ])('in %s is copied, so that no other code loses memory', async (_, memory) => {
    const slab = Buffer.from(memory())
    const bytes = body().copy(slab, slab.length - MIB)
    const result = await read(slab.subarray(slab.length - bytes), common)
    expect(shown(result)).toEqual(shown(readRequest(body(), chatCompletions)))
    expect(slab.subarray(slab.length - bytes).equals(body())).toBe(true)
  })

  test('does not stop the event loop while it is parsed', async () => {
    const bytes = body(20 * MIB)
    const atOnce = await turnsDuring(async () => void readRequest(bytes, chatCompletions))
    const inWorker = await turnsDuring(() => read(bytes, common))
    expect(bytes.length).toBe(0)
    expect(atOnce).toBe(0)
    expect(inWorker).toBeGreaterThan(100)
  })

  test('is dropped when its client leaves, and never read if it is still waiting', async () => {
    const [first, second] = [new EventEmitter(), new EventEmitter()]
    const [readNow, waiting] = [body(8 * MIB), body()]
    const results = [common.read(readNow, chatCompletions, first), common.read(waiting, chatCompletions, second)]
    await turn()
    second.emit('close')
    first.emit('close')
    expect([await results[0], await results[1]]).toEqual([undefined, undefined])
    expect(shown(await read(body(), common))).toEqual(shown(readRequest(body(), chatCompletions)))
    expect([readNow.length, waiting.length]).toEqual([0, MIB])
    expect([first.listenerCount('close'), second.listenerCount('close')]).toEqual([0, 0])
  })
})

test('bodies up to 256 KiB never see the worker: they need none, and no promise', async () => {
  makeReader()
  expect(reader.read(body(AT_ONCE), chatCompletions, new EventEmitter())).toEqual(readRequest(body(AT_ONCE), chatCompletions))
  expect(reader.read(body(AT_ONCE, ASK), chatCompletions, new EventEmitter())).toBeInstanceOf(GatewayError)
  expect(shown(await read(body(AT_ONCE + 1)))).toMatchObject({ row: 'internalError' })
})

test('a large body of a dialect that the worker does not know is read at once', () => {
  makeReader()
  expect(reader.read(body(), { ...chatCompletions, path: '/v1/toy' }, new EventEmitter())).not.toBeInstanceOf(Promise)
})

describe('a large answer', () => {
  const ORDER = { isStream: false, wantsUsage: false, model: 'llama', asked: { model: 'llama', stopSequences: [], inputTokens: 5 } }
  const chat = (fields: object, bytes = MIB): Buffer =>
    Buffer.from(JSON.stringify({ ...fields, usage: { prompt_tokens: 7, completion_tokens: 3 }, pad: 'x'.repeat(bytes) }))
  const whole = { choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }] }

  test.each<[string, Buffer, object]>([
    ['an answer', chat(whole), { kind: 'Answer', report: { promptTokens: 7, outputTokens: 3 } }],
    ['an error', chat({ error: 'no' }), { kind: 'Error', body: undefined }],
    ['an answer without an end', chat({ choices: [] }), { kind: 'Unreadable', report: { promptTokens: 7 } }],
    ['no object', Buffer.from(`[${'0,'.repeat(150_000)}0]`), { kind: 'Unreadable', reason: 'its answer is not a JSON object' }],
    ['too many parts', Buffer.from(`[${'[],'.repeat(150_000)}0]`), { kind: 'Unreadable', reason: 'its answer has too many parts' }],
  ])('is the same from the worker as at once: %s', async (_, bytes, expected) => {
    expect(bytes.length).toBeGreaterThan(AT_ONCE)
    const sameID = (answer: unknown): unknown => JSON.parse(JSON.stringify(answer, (key, value: unknown) => (key === 'bytes' ? 0 : value)))
    const direct = wholeAnswer(bytes, messages, ORDER)
    const sent = Buffer.from(bytes)
    const written = await common.answer(sent, messages, new EventEmitter(), ORDER)
    expect(sameID(written)).toEqual(sameID(direct))
    expect(written).toMatchObject(expected)
    expect([sent.length, workers.length]).toEqual([0, 0])
  })

  test('does not stop the event loop while it is translated', async () => {
    const bytes = chat(whole, 20 * MIB)
    const inWorker = await turnsDuring(async () => common.answer(bytes, messages, new EventEmitter(), ORDER))
    expect(inWorker).toBeGreaterThan(100)
  })

  test('that is small never sees the worker', () => {
    makeReader()
    expect(reader.answer(chat(whole, 100), messages, new EventEmitter(), ORDER)).toMatchObject({ kind: 'Answer' })
  })
})

describe('large bodies of many tenants', () => {
  test('take turns by tenant and then by key: forty of one tenant before it delay a body by two', async () => {
    await makeReader().start()
    const order: string[] = []
    const send = (tenant: string, key: string): Promise<unknown> => {
      const result = reader.read(body(), chatCompletions, new EventEmitter(), { owner: { tenant, key } })
      return Promise.resolve(result).then(() => order.push(key))
    }
    const greedy = Array.from({ length: 40 }, (_, number) => send('greedy', number < 35 ? 'first' : `other-${number}`))
    await Promise.all([...greedy, send('modest', 'modest')])
    expect(order.indexOf('modest')).toBeLessThanOrEqual(2)
    expect(
      order.slice(0, 12).filter((key) => key.startsWith('other')),
      'one key delays the others of its tenant by one turn',
    ).toHaveLength(5)
  })
})

describe('a worker that fails', () => {
  const works = async (): Promise<void> => expect(shown(await read(body()))).toEqual(shown(readRequest(body(), chatCompletions)))

  test('answers its body with row 34 and the cause; waiting and later bodies are read by the next worker', async () => {
    await makeReader().start()
    const results = [read(body(20 * MIB)), read(body())]
    await turn()
    void workers[0]?.terminate()
    const [held, waited] = await Promise.all(results)
    expect(shown(held)).toMatchObject({ row: 'internalError', cause: new Error('the worker ended with code 1') })
    expect(shown(waited)).toEqual(shown(readRequest(body(), chatCompletions)))
    await works()
    expect(workers).toHaveLength(2)
    expect(logged).toEqual([expect.stringContaining('{"cause":"the worker ended with code 1"}')])
  })

  test('is replaced even without waiting bodies', async () => {
    await makeReader().start()
    await workers[0]?.terminate()
    await works()
  })

  test('for lack of memory reports this cause', async () => {
    await makeReader({ program: FULL, maxBodyBytes: MIB }).start()
    expect(shown(await read(body()))).toMatchObject({ row: 'internalError', cause: { code: 'ERR_WORKER_OUT_OF_MEMORY' } })
    expect(logged).toEqual([expect.stringContaining('reaching memory limit')])
  })

  test('to answer within ten seconds is replaced', async () => {
    const clock = new ManualClock()
    await makeReader({ program: SILENT, clock }).start()
    const result = read(body())
    await clock.advance(9_999)
    expect(workers).toHaveLength(1)
    await clock.advance(1)
    expect(shown(await result)).toMatchObject({ row: 'internalError', cause: { message: 'the worker was silent for 10000 ms' } })
    expect(workers).toHaveLength(2)
    expect(clock.pending).toBe(1) // the start of the next one
  })

  test('to start fails the start; large bodies get row 34 at once, small ones are served, and a second later the next one starts', async () => {
    const clock = new ManualClock()
    makeReader({ clock, program: new URL('absent.js', import.meta.url) })
    await expect(reader.start()).rejects.toThrow('absent.js')
    expect(shown(await read(body()))).toMatchObject({ row: 'internalError' })
    expect(await read(body(1000))).not.toBeInstanceOf(GatewayError)
    expect(workers).toHaveLength(1)
    await clock.advance(1_000)
    expect(workers).toHaveLength(2)
  })
})

test('a stop ends the worker: bodies that it holds or that wait get row 34', async () => {
  await makeReader().start()
  const results = [read(body(8 * MIB)), read(body())]
  await turn()
  await reader.stop()
  expect((await Promise.all(results)).map((result) => result instanceof GatewayError && result.row.number)).toEqual([34, 34])
  expect([workers.length, workers[0]?.threadId, logged]).toEqual([1, -1, []])
})

test('the worker keeps no process alive', () => {
  const program = `import { BodyReader } from ${JSON.stringify(fileURLToPath(new URL('body-reader.ts', import.meta.url)))}
    import { systemClock } from ${JSON.stringify(fileURLToPath(new URL('../../lib/platform/clock.ts', import.meta.url)))}
    setTimeout(() => console.log('late'), 30_000).unref()
    const keep = setInterval(() => undefined, 1_000)
    await new BodyReader({ log: console, clock: systemClock, maxBodyBytes: 1 }).start()
    clearInterval(keep)`
  expect(execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8', timeout: HANG_MS })).toBe('')
})

test('a worker has neither the environment nor the flags of its process', async () => {
  const program = new URL(
    `data:text/javascript,import{parentPort}from'node:worker_threads';if(Object.keys(process.env).length+process.execArgv.length)throw 1;parentPort.postMessage('ready')`,
  )
  const made = once(process, 'worker') as Promise<[Worker]>
  const ready = makeReader({ program }).start()
  const [worker] = await made
  await Promise.all([ready, once(worker, 'exit')]) // it listens to nothing, and so ends soon, perhaps before its message is read
  expect(Object.keys(process.env)).not.toEqual([])
})

test('a program that was started with low priority (nice) has a worker too, and keeps its priority', () => {
  const worker = fileURLToPath(new URL('body-worker.ts', import.meta.url))
  const print = `await import(${JSON.stringify(worker)}); process.stdout.write(String((await import('node:os')).getPriority()))`
  const nice = ['-n', '15', process.execPath, '--input-type=module', '--eval', print]
  expect(Number(execFileSync('nice', nice, { encoding: 'utf8' }))).toBeGreaterThanOrEqual(15)
})

describe('a translation', () => {
  const servers = [{ engine: 'VLLM' }, { engine: 'TGI' }] as const
  const long = (bytes: number): Buffer => {
    const content = 'x'.repeat(bytes)
    return Buffer.from(
      JSON.stringify({ model: 'llama', max_tokens: 5, thinking: { type: 'disabled' }, messages: [{ role: 'user', content }] }),
    )
  }

  test('of a large body is made by the worker, equals that of this thread, and leaves the body as it was', async () => {
    const bytes = long(2 * MIB)
    let result: unknown
    const turns = await turnsDuring(
      async () => (result = await common.translate(bytes, messages, new EventEmitter(), { translations: servers })),
    )
    expect(result).toEqual(servers.map((options) => translateBody(bytes, messages, options)))
    expect(turns).toBeGreaterThan(1)
    expect(bytes).toEqual(long(2 * MIB))
  })

  test('of a small body is made at once', () => {
    expect(common.translate(long(1_000), messages, new EventEmitter(), { translations: servers })).not.toBeInstanceOf(Promise)
  })

  test('that cannot be made is a refusal for its server alone', async () => {
    const content = [
      { type: 'text', text: 'x'.repeat(MIB) },
      { type: 'document', source: { type: 'url', url: 'http://x' } },
    ]
    const bytes = Buffer.from(JSON.stringify({ model: 'llama', messages: [{ role: 'user', content }] }))
    const results = await common.translate(bytes, messages, new EventEmitter(), { translations: servers })
    expect(results).toMatchObject([{ row: { id: 'untranslatable' } }, { row: { id: 'untranslatable' } }])
  })
})
