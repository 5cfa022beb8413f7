import type { ServerResponse } from 'node:http'
import type { Dispatcher, Pool } from 'undici'
import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { sharedBodyReader } from '../../test/support/shared-body-reader.ts'
import { unsentExchange } from '../../test/support/unsent-exchange.ts'
import { backendRecord, modelRecord } from '../../test/support/upstream-harness.ts'
import { GatewayError } from '../errors.ts'
import { chatCompletions } from '../dialects/chat-completions.ts'
import type { WholeAnswer } from '../dialects/whole-answer.ts'
import { BodyBudget, type BodyLimits } from '../http/body-budget.ts'
import { LoopShare } from '#platform/loop-share.ts'
import { Attempt, type AttemptDeps } from './attempt.ts'
import { BackendHealth } from './backend-health.ts'
import type { AttemptResult, ForwardJob } from './forward-job.ts'
import { modelEntry, targetsOf, type Target } from './model-table.ts'
import { Ticker } from './ticker.ts'
import { forwardedHeaders } from './upstream-headers.ts'

interface World {
  /** `wasAborted`: whether the server's work was stopped before the result. */
  readonly result: Promise<AttemptResult & { wasAborted: boolean }>
  readonly attempt: Attempt
  readonly target: Target
  readonly ticker: Ticker
  readonly clock: ManualClock
  readonly loop: LoopShare
  readonly response: ServerResponse
  readonly controller: Dispatcher.DispatchController & { abortedWith: Error | undefined }
  /** The request to undici. */
  readonly dispatched: Dispatcher.DispatchOptions[]
}

/** What is around an attempt. */
interface Around {
  readonly nameFailure?: Error
  readonly answers?: AttemptDeps['answers']
}

const EVENT = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${'x'.repeat(10_000)}"}}]}\n\n`)

/** An attempt whose pool only records requests; the test plays undici. */
function world(stream = false, reasonToEnd?: ForwardJob['reasonToEnd'], { nameFailure, answers = sharedBodyReader }: Around = {}): World {
  const ticker = new Ticker(1_000_000)
  const clock = new ManualClock()
  const loop = new LoopShare(clock, () => clock.monotonic())
  const health = new BackendHealth(ticker, () => Promise.resolve(false))
  const model = modelEntry(
    modelRecord({
      timeouts: { firstByteSeconds: 5, idleSeconds: 3, totalSeconds: 10 },
      backends: [backendRecord({ endpoints: ['10.0.0.1:80'] })],
    }),
    { allowLoopback: false },
    undefined,
  )
  const [target] = targetsOf(model) as [Target]
  const exchange = unsentExchange()
  const { response } = exchange
  const dispatched: Dispatcher.DispatchOptions[] = []
  const dispatch: Pool['dispatch'] = (options) => {
    dispatched.push(options)
    return true
  }
  const job: ForwardJob = {
    model,
    askedName: 'llama',
    exchange,
    dialect: chatCompletions,
    stream,
    body: { bytes: Buffer.from('{"model":"llama"}'), model: 'llama', modelAt: { start: 9, end: 16 } },
    reasonToEnd,
  }
  const pools = { of: () => ({ dispatch }) as Pool }
  const names = { failure: () => nameFailure }
  if (nameFailure) health.connectFailed(target.health)
  const deps = { pools, names, ticker, loop, health, forwarded: forwardedHeaders(), maxAnswerBytes: 200_000, answers }
  const controller = fakeController()
  const { promise: result, resolve } = Promise.withResolvers<AttemptResult & { wasAborted: boolean }>()
  const onResult = (given: AttemptResult): void => resolve({ ...given, wasAborted: controller.abortedWith !== undefined })
  const attempt = new Attempt(job, target, { startedAt: ticker.now, onResult }, deps)
  attempt.start(undefined)
  return { result, attempt, target, ticker, clock, loop, response, controller, dispatched }
}

/** A world that shows what the client gets. */
function writing(stream: boolean, around?: Around): World & { written: () => string } {
  const made = world(stream, undefined, around)
  const { response } = made
  let text = ''
  response.write = (bytes: Buffer) => ((text += String(bytes)), true)
  response.end = ((bytes?: Buffer) => ((text += String(bytes ?? '')), response)) as ServerResponse['end']
  return { ...made, written: () => text }
}

/** A stream whose backend has answered while the event loop has other work: its next large chunk waits. */
function streamOnBusyLoop(): World & { written: () => string } {
  const made = writing(true)
  const { attempt, loop, controller } = made
  while (!loop.spend(65_536, 0));
  attempt.onRequestStart(controller)
  attempt.onResponseStart(controller, 200, { 'content-type': 'text/event-stream' })
  return made
}

function fakeController(): World['controller'] {
  return {
    abortedWith: undefined,
    aborted: false,
    paused: false,
    reason: null,
    pause: () => undefined,
    resume: () => undefined,
    abort(reason) {
      this.abortedWith = reason
    },
  }
}

describe('one request to one server', () => {
  it('counts towards its load from the start until the backend is done with it', () => {
    const { attempt, target, controller } = world()
    expect(target.health.inFlight).toBe(1)
    attempt.onRequestStart(controller)
    attempt.onResponseError(controller, new Error('reset'))
    expect(target.health.inFlight).toBe(0)
  })

  it.each([true, false])(
    'counts against its server when its total time has passed, unless the server has ended its answer: %s',
    async (hasEnded) => {
      const { promise: never } = Promise.withResolvers<WholeAnswer>()
      const { attempt, result, controller, ticker, target } = world(true, undefined, { answers: { answer: () => never } })
      attempt.onRequestStart(controller)
      attempt.onResponseStart(controller, 200, { 'content-type': 'application/json' })
      for (let tick = 0; tick < 11; tick++) {
        if (tick < 9) attempt.onResponseData(controller, Buffer.from(' '))
        if (tick === 9 && hasEnded) attempt.onResponseEnd()
        ticker.tick()
      }
      expect(await result).toMatchObject({ kind: 'failed', error: { row: { number: 33 } } })
      expect(target.health.failures).toBe(hasEnded ? 0 : 1)
    },
  )

  it('is aborted as soon as it is sent if the client left during the connect', async () => {
    const { attempt, result, controller, ticker } = world()
    attempt.clientClosed()
    expect(await result).toMatchObject({ kind: 'clientGone', usage: undefined })
    attempt.onRequestStart(controller)
    expect(controller.abortedWith).toBeInstanceOf(Error)
    expect(ticker.size).toBe(0)
  })

  it('to a server whose name was recently not found is refused without a connection', async () => {
    const { result, dispatched, target, ticker } = world(false, undefined, { nameFailure: new Error('getaddrinfo ENOTFOUND') })
    expect(await result).toMatchObject({ kind: 'failed', isRetryable: true, error: { row: { number: 26 } } })
    expect([dispatched.length, target.health.inFlight, ticker.size]).toEqual([0, 0, 1]) // 1: the probe of the ejected server
  })

  it.each(['EMFILE', 'ENFILE'])(
    'that finds no file descriptor left (%s) is refused as load of the gateway, and the server is not blamed',
    async (code) => {
      const { attempt, result, target, controller } = world()
      attempt.onResponseError(controller, Object.assign(new Error('connect'), { code }))
      expect(await result).toMatchObject({ kind: 'failed', isRetryable: false, error: { row: { number: 25, id: 'overloaded' } } })
      expect([target.health.isUp, target.health.failures]).toEqual([true, 0])
    },
  )

  it('that undici refuses is our own bug', async () => {
    const { attempt, result, target, controller } = world()
    attempt.onResponseError(controller, Object.assign(new Error('invalid header'), { code: 'UND_ERR_INVALID_ARG' }))
    expect(await result).toMatchObject({ kind: 'failed', isRetryable: false, error: { row: { number: 34 } } })
    expect(target.health.isUp).toBe(true)
  })

  it('ends after firstByteSeconds without an answer, not a second earlier', async () => {
    const { attempt, result, ticker, controller } = world()
    attempt.onRequestStart(controller)
    for (let i = 0; i < 5; i++) ticker.tick()
    expect(controller.abortedWith).toBeUndefined()
    ticker.tick()
    expect(await result).toMatchObject({ kind: 'failed', isRetryable: false, error: { row: { number: 33 } } })
    expect(controller.abortedWith).toBeInstanceOf(Error)
  })

  it('a head and comments do not stop the clock of the first byte', async () => {
    const { attempt, result, ticker, controller } = world(true)
    attempt.onRequestStart(controller)
    attempt.onResponseStart(controller, 200, { 'content-type': 'text/event-stream' })
    for (let i = 0; i < 6; i++) {
      attempt.onResponseData(controller, Buffer.from(': still loading\n\n'))
      ticker.tick()
    }
    expect(await result).toMatchObject({ error: { row: { number: 33 } } })
  })

  it('ends after idleSeconds of silence within an answer; every chunk restarts them', () => {
    const { attempt, ticker, controller } = world()
    attempt.onRequestStart(controller)
    attempt.onResponseStart(controller, 200, { 'content-type': 'application/json' })
    for (let i = 0; i < 3; i++) ticker.tick()
    attempt.onResponseData(controller, Buffer.from('{'))
    for (let i = 0; i < 3; i++) ticker.tick()
    expect(controller.abortedWith).toBeUndefined()
    ticker.tick()
    expect(controller.abortedWith).toBeInstanceOf(Error)
  })

  it('takes a mebibyte of a stream per second, however fast its server writes, and does not count the wait as silence', async () => {
    const { attempt, ticker, clock, controller, response } = world(true)
    let isPaused = false
    controller.pause = () => (isPaused = true)
    controller.resume = () => (isPaused = false)
    response.write = () => true // a client that takes everything
    attempt.onRequestStart(controller)
    attempt.onResponseStart(controller, 200, { 'content-type': 'text/event-stream' })
    for (let second = 0; second < 8; second++) {
      let bytes = 0
      for (; !isPaused; bytes += EVENT.length) attempt.onResponseData(controller, EVENT)
      expect(bytes).toBeGreaterThanOrEqual(2 ** 20)
      expect(bytes).toBeLessThan(2 ** 20 + EVENT.length)
      ticker.tick()
      await clock.advance(1)
      expect([isPaused, controller.abortedWith]).toEqual([false, undefined])
    }
  })

  it.each(['ends', 'breaks'] as const)('events that wait for the event loop reach the client if their server %s during the wait', (how) => {
    const { attempt, controller, written } = streamOnBusyLoop()
    attempt.onResponseData(controller, Buffer.concat([EVENT, EVENT]))
    expect(written()).toBe('')
    if (how === 'ends') attempt.onResponseEnd()
    else attempt.onResponseError(controller, new Error('reset'))
    expect(written().startsWith(String(EVENT).repeat(2))).toBe(true)
  })

  it('drops the body with the first byte of the answer, because no second attempt is possible', () => {
    const { attempt, controller } = world(true)
    const bodies = new BodyBudget({ process: 10, large: 10, perTenant: 10, perKey: 10 })
    attempt.job.exchange.bodyHold = bodies.open({ tenant: 'shop', key: 'key' })
    attempt.job.exchange.bodyHold.take(5)
    attempt.onRequestStart(controller)
    attempt.onResponseStart(controller, 200, { 'content-type': 'text/event-stream' })
    expect([attempt.job.body?.model, bodies.bytes]).toEqual(['llama', 5])
    attempt.onResponseData(controller, EVENT)
    expect([attempt.job.body, bodies.bytes]).toEqual([undefined, 0])
  })

  it.each([false, true])('copies short chunks of a plain answer together, whether it is written in another form or not: %s', (stream) => {
    const { attempt, controller, written } = writing(stream)
    const chunk = Buffer.from('?')
    attempt.onRequestStart(controller)
    attempt.onResponseStart(controller, 200, { 'content-type': 'application/json' })
    attempt.onResponseData(controller, Buffer.from('{'))
    for (const letter of `"choices":[],"id":"${'ab'.repeat(400)}"}`) {
      chunk.write(letter)
      attempt.onResponseData(controller, chunk)
    }
    attempt.onResponseEnd()
    expect(written()).toContain(`"id":"${'ab'.repeat(400)}"`)
  })

  it('books an answer that was written in another form, even if that is longer than the share of its key', () => {
    const bytes = Buffer.alloc(150_000)
    const { attempt, controller } = writing(true, { answers: { answer: () => ({ kind: 'Answer', bytes }) } })
    const bodies = new BodyBudget({ process: 2 ** 20, large: 2 ** 20, perTenant: 2 ** 20, perKey: 100_000 })
    const hold = bodies.open({ tenant: 'shop', key: 'key' })
    attempt.job.exchange.bodyHold = hold
    attempt.onRequestStart(controller)
    attempt.onResponseStart(controller, 200, { 'content-type': 'application/json' })
    attempt.onResponseData(controller, Buffer.alloc(90_000))
    expect(bodies.bytes).toBe(90_000)
    attempt.onResponseEnd()
    expect(bodies.bytes).toBe(150_000)
    hold.release()
    expect(bodies.bytes).toBe(0)
  })

  it.each<[string, Partial<BodyLimits>, string]>([
    ['its key', { perKey: 100_000 }, 'tooManyBodies'],
    ['its tenant', { perTenant: 100_000 }, 'tooManyBodies'],
    ['the process', { large: 100_000 }, 'bodiesFull'],
  ])('is refused with the row of the share that an answer read whole has filled: that of %s', async (_, limits, row) => {
    const { attempt, controller, result } = world(true)
    const bodies = new BodyBudget({ process: 2 ** 20, large: 2 ** 20, perTenant: 2 ** 20, perKey: 2 ** 20, ...limits })
    bodies.open({ tenant: 'shop', key: 'key' }).take(50_000)
    attempt.job.exchange.bodyHold = bodies.open({ tenant: 'shop', key: 'key' })
    attempt.onRequestStart(controller)
    attempt.onResponseStart(controller, 200, { 'content-type': 'application/json' })
    attempt.onResponseData(controller, Buffer.alloc(90_000))
    expect(await result).toMatchObject({ kind: 'failed', isRetryable: false, error: { row: { id: row } } })
  })

  it('informational answers do not count as answers', async () => {
    const { attempt, result, controller } = world()
    attempt.onRequestStart(controller)
    attempt.onResponseStart(controller, 103, { link: '</x>' })
    attempt.onResponseStart(controller, 400, { 'content-type': 'application/json' })
    attempt.onResponseData(controller, Buffer.from('{"error":"no"}'))
    attempt.onResponseEnd()
    expect(await result).toMatchObject({ kind: 'failed', error: { row: { number: 29 } } })
  })

  it('an unknown compression is unreadable', async () => {
    const { attempt, result, controller } = world()
    attempt.onRequestStart(controller)
    attempt.onResponseStart(controller, 200, { 'content-type': 'application/json', 'content-encoding': 'gzip, br' })
    expect(await result).toMatchObject({ kind: 'failed', error: { row: { number: 32 } } })
  })
})

describe('an exception in the code of the gateway', () => {
  /** A world whose answer to the client throws as soon as it is begun. */
  function brokenWorld(stream: boolean): World {
    const made = world(stream)
    made.response.writeHead = () => {
      throw new TypeError('a bug')
    }
    made.attempt.onRequestStart(made.controller)
    made.attempt.onResponseStart(made.controller, 200, { 'content-type': stream ? 'text/event-stream' : 'application/json' })
    return made
  }
  const event = Buffer.from('data: {"choices":[]}\n\n')

  it.each<[string, boolean, (made: World) => void]>([
    ['undici, with a chunk', true, ({ attempt, controller }) => attempt.onResponseData(controller, event)],
    [
      'undici, at the end',
      false,
      ({ attempt, controller }) => {
        attempt.onResponseData(controller, Buffer.from('{"choices":[]}'))
        attempt.onResponseEnd()
      },
    ],
    ['the decoder, with a chunk', true, ({ attempt }) => attempt.data(event)],
    [
      'the decoder, at the end',
      false,
      ({ attempt }) => {
        attempt.data(Buffer.from('{"choices":[]}'))
        attempt.end()
      },
    ],
    [
      'the timer',
      true,
      ({ attempt, ticker }) => {
        Object.assign(attempt.job.model.record.timeouts, { firstByteSeconds: 60, totalSeconds: 60 })
        for (let tick = 0; tick < 15; tick++) ticker.tick() // a keep-alive is due
      },
    ],
  ])('ends this request and nothing else, when it is called by %s', async (_caller, stream, call) => {
    const made = brokenWorld(stream)
    expect(() => call(made)).not.toThrow()
    expect(await made.result).toMatchObject({ error: { row: { number: 34 } } })
    if (stream) expect(made.controller.abortedWith).toBeInstanceOf(Error) // the plain answers have ended already
    expect(made.target.health.isUp).toBe(true)
  })

  it('in the frame that reports the failure to the client cuts the connection', async () => {
    const { attempt, result, controller, response } = world(true)
    attempt.onRequestStart(controller)
    attempt.onResponseStart(controller, 200, { 'content-type': 'text/event-stream' })
    attempt.onResponseData(controller, event)
    response.end = () => {
      throw new TypeError('a bug')
    }
    expect(() => attempt.onResponseEnd()).not.toThrow()
    expect(await result).toMatchObject({ kind: 'answered', error: { row: { number: 34 } } })
    expect(response.destroyed).toBe(true)
  })
})

describe('a failed attempt', () => {
  it('is aborted before its result is known, because the result may start another attempt', async () => {
    const { attempt, result, controller } = world()
    attempt.onRequestStart(controller)
    attempt.refused({ status: 503, body: undefined })
    expect(await result).toMatchObject({ kind: 'failed', isRetryable: true, wasAborted: true })
  })
})

describe('a call whose key has ended', () => {
  const suspended = new GatewayError('inactiveKey', { state: 'suspended' })

  it('ends within a second, before the first byte with the row of the key, and no other server is asked', async () => {
    const { attempt, result, controller, ticker, target } = world(false, () => suspended)
    attempt.onRequestStart(controller)
    ticker.tick()
    expect(await result).toMatchObject({ kind: 'failed', error: suspended, isRetryable: false })
    expect(controller.abortedWith).toBeInstanceOf(Error)
    expect(target.health.isUp).toBe(true)
  })

  it('is refused even if its answer is being written in another form: what comes of that is dropped', async () => {
    const { promise: writing, resolve } = Promise.withResolvers<WholeAnswer>()
    const { attempt, result, controller, ticker, response, target } = world(true, () => suspended, { answers: { answer: () => writing } })
    attempt.onRequestStart(controller)
    attempt.onResponseStart(controller, 200, { 'content-type': 'application/json' })
    attempt.onResponseData(controller, Buffer.from('{"choices":[]}'))
    attempt.onResponseEnd()
    ticker.tick()
    expect(await result).toMatchObject({ kind: 'failed', error: suspended, usage: { isEstimated: true } })
    resolve({ kind: 'Answer', bytes: Buffer.from('data: [DONE]') })
    await writing
    expect([response.headersSent, response.destroyed, target.health.inFlight]).toEqual([false, false, 0])
  })
})
