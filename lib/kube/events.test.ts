import { Writable } from 'node:stream'
import { pino } from 'pino'
import { beforeEach, expect, test } from 'vitest'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KubeEventRecorder } from './events.ts'
import { KubeError, type KubeObject } from './port.ts'
import { events } from './resources.ts'

const bot: KubeObject = { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata: { name: 'bot', namespace: 'shop', uid: 'u-1' } }
const text = { type: 'Normal', reason: 'Issued', action: 'Issue', note: 'The key was issued.' } as const

let port: FakeKubePort
let clock: ManualClock
let lines: string[]
let recorder: KubeEventRecorder

beforeEach(() => {
  port = new FakeKubePort()
  clock = new ManualClock()
  lines = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  recorder = new KubeEventRecorder({ kube: port, clock, logger: pino({ level: 'info' }, sink), instance: 'operator-0' })
})

test('an event names the object, the reporter and a name that the API accepts', async () => {
  recorder.record(bot, text)
  await recorder.flush()
  const [event] = await port.list(events, 'shop')
  expect(event).toMatchObject({
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'headgate.dev/operator',
    reportingInstance: 'operator-0',
    regarding: { kind: 'ApiKey', namespace: 'shop', name: 'bot', uid: 'u-1' },
    ...text,
  })
  expect(event?.metadata.name).toMatch(/^bot\.[0-9a-f]{16}$/)
})

test('a repeat becomes a count on the first event', async () => {
  recorder.record(bot, text)
  await recorder.flush()
  await clock.advance(60_000)
  recorder.record(bot, text)
  await recorder.flush()
  const all = await port.list(events, 'shop')
  expect(all).toHaveLength(1)
  expect(all[0]?.series).toEqual({ count: 2, lastObservedTime: '2026-01-01T00:01:00.000000Z' })
})

test('long names and notes are cut to what the API takes', async () => {
  recorder.record(
    { ...bot, metadata: { ...bot.metadata, name: `${'a'.repeat(235)}.${'b'.repeat(17)}` } },
    { ...text, note: 'ü'.repeat(600) },
  )
  await recorder.flush()
  const [event] = await port.list(events, 'shop')
  expect(event?.metadata.name.length).toBeLessThanOrEqual(253)
  expect(event?.metadata.name).toMatch(/^a+\.[0-9a-f]{16}$/)
  expect(Buffer.byteLength(event?.note ?? '')).toBe(1024)
})

test('an event that cannot be written is logged, never thrown, and made again the next time', async () => {
  port.before = () => {
    throw new KubeError('Forbidden', 403, 'create events.events.k8s.io: 403 Forbidden')
  }
  recorder.record(bot, text)
  await recorder.flush()
  expect(lines.join('')).toContain('Event not written: create events')
  port.before = () => undefined
  recorder.record(bot, text)
  await recorder.flush()
  expect(await port.list(events, 'shop')).toHaveLength(1)
})

test('a namespace that is being deleted takes no events, and the refusal is not logged', async () => {
  port.before = () => {
    throw new KubeError('NamespaceTerminating', 403, 'terminating')
  }
  recorder.record(bot, text)
  await recorder.flush()
  expect(lines).toEqual([])
})

test('events about a cluster-scoped object go to the default namespace', async () => {
  recorder.record({ ...bot, metadata: { name: 'gold', uid: 'u-2' } }, text)
  await recorder.flush()
  expect(await port.list(events, 'default')).toHaveLength(1)
})

test('a namespace that is known to be deleted is not asked', async () => {
  recorder = new KubeEventRecorder({
    kube: port,
    clock,
    logger: pino({ level: 'silent' }),
    instance: 'operator-0',
    isTerminating: () => true,
  })
  recorder.record(bot, text)
  await recorder.flush()
  expect(port.calls).toEqual([])
})

test('a storm of events is written four at a time; the oldest are dropped and counted, and none blocks its caller', async () => {
  let running = 0
  let most = 0
  let dropped = 0
  port.before = async () => {
    most = Math.max(most, (running += 1))
    await new Promise((resolve) => setImmediate(resolve))
    running -= 1
  }
  const logger = pino({ level: 'silent' })
  recorder = new KubeEventRecorder({ kube: port, clock, logger, instance: 'operator-0', onDropped: () => (dropped += 1) })
  for (let index = 0; index < 1_100; index += 1)
    recorder.record({ ...bot, metadata: { ...bot.metadata, name: `bot-${index}`, uid: `u-${index}` } }, text)
  await recorder.flush()
  expect({ most, dropped, written: (await port.list(events, 'shop')).length }).toEqual({ most: 4, dropped: 96, written: 1_004 })
})

test('an API server that does not answer holds up the end of the process for 5 s only', async () => {
  port.before = () => new Promise(() => undefined)
  recorder.record(bot, text)
  let flushed = false
  void recorder.flush().then(() => (flushed = true))
  await clock.advance(4_999)
  expect(flushed).toBe(false)
  await clock.advance(1)
  expect(flushed).toBe(true)
})
