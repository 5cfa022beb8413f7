import { Writable } from 'node:stream'
import { pino } from 'pino'
import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import { KubeError, type KubeObject, type Resource } from './port.ts'
import type { ListResult, Selection } from './raw-client.ts'
import { Reflector, SILENCE_MS, type ListWatchSource, type ReflectorProbe } from './reflector.ts'
import { InformerFactory } from './informer-factory.ts'
import { ObjectCache } from './object-cache.ts'
import { StatusError } from './status-error.ts'
import type { WatchEvent } from './watch-events.ts'

const things: Resource = { group: 'headgate.dev', version: 'v1alpha1', plural: 'things', kind: 'Thing', namespaced: true }
const asked = { verb: 'list', resource: 'things.headgate.dev', object: '' }

function thing(name: string, version: number): KubeObject {
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'Thing',
    metadata: { name, namespace: 'shop', uid: name, resourceVersion: String(version) },
  }
}

/** One open watch that the test feeds. */
class ScriptedWatch {
  readonly version: string
  readonly timeoutSeconds: number
  readonly signal: AbortSignal
  #queue: Array<WatchEvent | 'end' | Error> = []
  #wake: () => void = () => undefined

  constructor(at: { resourceVersion: string; timeoutSeconds: number }, signal: AbortSignal) {
    this.version = at.resourceVersion
    this.timeoutSeconds = at.timeoutSeconds
    this.signal = signal
    signal.addEventListener('abort', () => this.push(new Error('aborted')))
  }

  push(...steps: Array<WatchEvent | 'end' | Error>): void {
    this.#queue.push(...steps)
    this.#wake()
  }

  async *events(): AsyncGenerator<WatchEvent> {
    for (;;) {
      const step = this.#queue.shift()
      if (step === 'end') return
      if (step instanceof Error) throw step
      if (step) yield step
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}

/** A source whose lists and watches the test scripts. */
class ScriptedSource implements ListWatchSource {
  readonly lists: string[] = []
  readonly watches: ScriptedWatch[] = []
  answers: Array<ListResult<KubeObject> | Error | Promise<ListResult<KubeObject>>> = []
  fallback: ListResult<KubeObject> = { items: [], resourceVersion: '10' }
  refusals: Error[] = []

  async listAt<T extends KubeObject>(_resource: Resource<T>, _selection: Selection, version: string): Promise<ListResult<T>> {
    this.lists.push(version)
    const answer = await (this.answers.shift() ?? this.fallback)
    if (answer instanceof Error) throw answer
    return answer as ListResult<T>
  }

  async *watch(
    _resource: Resource,
    _selection: Selection,
    at: { resourceVersion: string; timeoutSeconds: number },
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent> {
    const refusal = this.refusals.shift()
    if (refusal) throw refusal
    const watch = new ScriptedWatch(at, signal)
    this.watches.push(watch)
    yield* watch.events()
  }

  get last(): ScriptedWatch {
    const watch = this.watches.at(-1)
    if (!watch) throw new Error('no watch yet')
    return watch
  }
}

const expired: WatchEvent = { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' } }
const bookmark = (version: number): WatchEvent => ({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(version) } } })

let clock: ManualClock
let source: ScriptedSource
let lines: string[]
let relists: string[]
let probe: ReflectorProbe
let cache: ObjectCache<KubeObject>
let reflector: Reflector<KubeObject>

beforeEach(() => {
  clock = new ManualClock()
  source = new ScriptedSource()
  lines = []
  relists = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)).msg)
      done()
    },
  })
  cache = new ObjectCache((error) => {
    throw error
  })
  reflector = new Reflector(things, { namespace: '' }, cache, {
    source,
    clock,
    logger: pino({ level: 'warn' }, sink),
    random: () => 0.5,
    metrics: { relisted: (_resource, reason) => relists.push(reason), watching: (_resource, its) => (probe = its) },
  })
})

const names = (): string[] => [...cache.list()].map((each) => each.metadata.name)

describe('without errors', () => {
  test('lists from the cache of the server, then watches from that version, with a time limit of 300 to 600 s', async () => {
    source.answers = [{ items: [thing('a', 3)], resourceVersion: '7' }]
    reflector.start()
    await reflector.synced
    await settle()
    expect(source.lists).toEqual([''])
    expect(source.last).toMatchObject({ version: '7', timeoutSeconds: 450 })
    source.last.push(
      { type: 'ADDED', object: thing('b', 8) },
      { type: 'MODIFIED', object: thing('a', 9) },
      { type: 'DELETED', object: thing('b', 10) },
    )
    await settle()
    expect(names()).toEqual(['a'])
  })

  test('a watch that the server ends is opened again from the last event or bookmark, without a list', async () => {
    reflector.start()
    await settle()
    await clock.advance(60_000)
    source.last.push(bookmark(55), 'end')
    await settle()
    expect(source.last.version).toBe('55')
    expect(source.lists).toHaveLength(1)
  })

  test('a watch with only bookmarks is healthy', async () => {
    reflector.start()
    await settle()
    for (let minute = 0; minute < 30; minute += 1) {
      await clock.advance(60_000)
      source.last.push(bookmark(100 + minute))
      await settle()
    }
    expect(source.watches).toHaveLength(1)
    expect(reflector.dead).toBe(false)
    expect(probe.lastEventSeconds()).toBe(0)
  })

  test('managedFields are not kept', async () => {
    reflector.start()
    await settle()
    source.last.push({ type: 'ADDED', object: { ...thing('a', 11), metadata: { ...thing('a', 11).metadata, managedFields: [{}] } } })
    await settle()
    expect(cache.get({ namespace: 'shop', name: 'a' })?.metadata).not.toHaveProperty('managedFields')
  })
})

describe('failures', () => {
  test('without event or bookmark for 150 s, the watch is closed and opened again from the last version', async () => {
    reflector.start()
    await settle()
    source.last.push(bookmark(42))
    await clock.advance(SILENCE_MS - 1)
    expect(source.watches).toHaveLength(1)
    await clock.advance(1)
    expect(source.watches[0]?.signal.aborted).toBe(true)
    expect(source.last.version).toBe('42')
    expect(source.lists).toHaveLength(1)
  })

  test('410 in the stream causes a list at once from the last version, and objects deleted meanwhile are removals', async () => {
    source.answers = [
      { items: [thing('a', 1), thing('b', 2)], resourceVersion: '10' },
      { items: [thing('a', 1)], resourceVersion: '90' },
    ]
    const removed: string[] = []
    cache.subscribe((before, after) => {
      if (before && !after) removed.push(before.metadata.name)
    })
    reflector.start()
    await settle()
    source.last.push(bookmark(42), expired)
    await settle()
    expect(source.lists).toEqual(['', '42'])
    expect(removed).toEqual(['b'])
    expect(source.last.version).toBe('90')
    expect(relists).toEqual(['Start', 'Expired'])
  })

  test('410 as the answer to the watch has the same effect', async () => {
    source.refusals = [new KubeError('Expired', 410, 'too old')]
    reflector.start()
    await settle()
    expect(source.lists).toEqual(['', '10'])
    expect(source.watches).toHaveLength(1)
  })

  test('repeated 410 causes lists of the newest state with a growing wait, not in a tight loop', async () => {
    source.refusals = Array.from({ length: 50 }, () => new KubeError('Expired', 410, 'too old'))
    reflector.start()
    await settle()
    expect(source.lists).toEqual(['', '10'])
    await clock.advance(10_000)
    expect(source.lists.length).toBeLessThan(8)
    expect(source.lists.at(-1)).toBe('')
  })

  test.each([
    ['a list that is refused as expired', new KubeError('Expired', 410, 'too old')],
    [
      'a version from the future',
      new StatusError(asked, {
        status: 504,
        text: '{"kind":"Status","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}',
      }),
    ],
  ])('%s is followed by a read of the newest state', async (_what, refusal) => {
    reflector.start()
    await settle()
    source.answers = [refusal]
    source.last.push(expired)
    await settle()
    expect(source.lists).toEqual(['', '10', ''])
  })

  test('after other errors the wait is 0.8 s doubling to 30 s, the watch continues from the last version, and 2 healthy minutes reset the wait', async () => {
    reflector.start()
    await settle()
    const waits: number[] = []
    for (let failure = 0; failure < 7; failure += 1) {
      const brokenAt = clock.monotonic()
      const opened = source.watches.length
      source.last.push(new KubeError('Unreachable', 0, 'reset'))
      await settle()
      while (source.watches.length === opened) await clock.advance(100)
      waits.push(clock.monotonic() - brokenAt)
    }
    expect(waits).toEqual([600, 1_200, 2_400, 4_800, 9_600, 19_200, 22_500])
    expect(source.last.version).toBe('10')
    expect(source.lists).toHaveLength(1)
    await clock.advance(121_000)
    source.last.push(new KubeError('Unreachable', 0, 'reset'))
    const opened = source.watches.length
    await clock.advance(600)
    expect(source.watches).toHaveLength(opened + 1)
  })

  test('a server that ends each watch at once causes no tight loop', async () => {
    reflector.start()
    await settle()
    source.last.push('end')
    await settle()
    expect(source.watches).toHaveLength(1)
    await clock.advance(600)
    expect(source.watches).toHaveLength(2)
  })

  test('missing CRDs and missing rights each cause one log line with the remedy, repeated, and need no restart', async () => {
    const missing = new StatusError(asked, { status: 404, text: '404 page not found' })
    const forbidden = new StatusError(asked, { status: 403, text: '{"kind":"Status","reason":"Forbidden","message":"User x cannot list"}' })
    source.answers = [missing, missing, forbidden, { items: [thing('a', 1)], resourceVersion: '5' }]
    reflector.start()
    await clock.advance(20_000)
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatch(/does not serve things\.headgate\.dev: install the CustomResourceDefinitions/)
    expect(lines[2]).toMatch(
      /no right to list and watch things\.headgate\.dev in all namespaces: grant get, list and watch .*User x cannot list/,
    )
    await reflector.synced
    expect(names()).toEqual(['a'])
  })

  test('an API server that is down for an hour does not make the reflector dead, because a restart would not help', async () => {
    source.fallback = { items: [], resourceVersion: '10' }
    source.answers = Array.from({ length: 500 }, () => new KubeError('Unreachable', 0, 'refused'))
    reflector.start()
    await clock.advance(3_600_000)
    expect(reflector.dead).toBe(false)
    expect(probe.synced()).toBe(false)
  })

  test('an outage ends when the watch works, also after a server that starts has refused first', async () => {
    const said: string[] = []
    const outage = { failed: () => void said.push('failed'), works: () => void said.push('works') }
    const deps = { source, clock, logger: pino({ level: 'silent' }), random: () => 0.5, outage }
    reflector = new Reflector(things, { namespace: '' }, cache, deps)
    reflector.start()
    await settle()
    source.refusals = [403, 429].map((status) => new StatusError(asked, { status, text: '{"kind":"Status","message":"not yet"}' }))
    source.last.push(new KubeError('Unreachable', 0, 'refused'))
    await clock.advance(20_000)
    expect(said).toEqual(['failed'])
    source.last.push(bookmark(11))
    await settle()
    expect(said).toEqual(['failed', 'works'])
  })

  test('a list that never ends makes the reflector dead', async () => {
    source.answers = [new Promise(() => undefined)]
    reflector.start()
    await clock.advance(451_000)
    expect(reflector.dead).toBe(true)
  })
})

describe('stop', () => {
  test('during a list: the result is dropped and no watch is opened', async () => {
    let answer = (_result: ListResult<KubeObject>): void => undefined
    source.answers = [new Promise((resolve) => (answer = resolve))]
    let calls = 0
    cache.subscribe(() => (calls += 1))
    reflector.start()
    await settle()
    reflector.stop()
    answer({ items: [thing('a', 1)], resourceVersion: '5' })
    await settle()
    expect({ calls, watches: source.watches.length, objects: names() }).toEqual({ calls: 0, watches: 0, objects: [] })
  })

  test('during a watch or a wait: silent and final', async () => {
    reflector.start()
    await settle()
    reflector.stop()
    source.last.push({ type: 'ADDED', object: thing('late', 99) })
    await clock.advance(600_000)
    reflector.start()
    await settle()
    expect({ watches: source.watches.length, lists: source.lists.length, objects: names(), lines }).toEqual({
      watches: 1,
      lists: 1,
      objects: [],
      lines: [],
    })
    expect(clock.pending).toBe(0)
  })
})

describe('several namespaces', () => {
  const inNamespace = (namespace: string): KubeObject => ({ ...thing('a', 1), metadata: { ...thing('a', 1).metadata, namespace } })

  function factoryOf(namespaces: readonly string[], refused: ReadonlySet<string> = new Set()): InformerFactory {
    const perNamespace: ListWatchSource = {
      async listAt<T extends KubeObject>(_resource: Resource<T>, { namespace }: Selection) {
        if (refused.has(namespace)) throw new KubeError('Forbidden', 403, 'list things: 403')
        return { items: [inNamespace(namespace) as T], resourceVersion: '5' }
      },
      watch: (resource, selection, at, signal) => source.watch(resource, selection, at, signal),
    }
    return new InformerFactory({ source: perNamespace, clock, logger: pino({ level: 'silent' }), random: Math.random }, namespaces)
  }

  test('are one informer with one set of indexes, which is synced when all namespaces are', async () => {
    const factory = factoryOf(['shop', 'web'])
    const informer = factory.createInformer(things)
    informer.addIndex('name', (object) => [object.metadata.name])
    const heard: string[] = []
    informer.subscribe((_before, after) => heard.push(after?.metadata.namespace ?? ''))
    factory.start()
    await factory.synced()
    expect(heard.toSorted()).toEqual(['shop', 'web'])
    expect(informer.get({ namespace: 'web', name: 'a' })?.metadata.namespace).toBe('web')
    expect(Array.from(informer.byIndex('name', 'a'), (object) => object.metadata.namespace ?? '').toSorted()).toEqual(['shop', 'web'])
    expect(informer.isSynced('elsewhere')).toBe(false)
    factory.stop()
  })

  test('a namespace without its Role does not delay the others, is not synced, and is watched when the Role is granted', async () => {
    const refused = new Set(['web'])
    const factory = factoryOf(['shop', 'web'], refused)
    const informer = factory.createInformer(things)
    factory.start()
    await factory.synced()
    expect([informer.isSynced('shop'), informer.isSynced('web')]).toEqual([true, false])
    refused.clear()
    await clock.advance(30_000)
    expect(informer.isSynced('web')).toBe(true)
    expect(informer.get({ namespace: 'web', name: 'a' })).toBeDefined()
    factory.stop()
  })

  test('a refused list of the whole cluster delays the start, unless the informer is optional', async () => {
    const factory = factoryOf([], new Set(['']))
    const needed = factory.createInformer(things)
    const optional = factory.createInformer(things, { mayBeRefused: true })
    const synced: string[] = []
    void needed.synced.then(() => synced.push('needed'))
    void optional.synced.then(() => synced.push('optional'))
    factory.start()
    await settle()
    expect(synced).toEqual(['optional'])
    expect(optional.isSynced('shop')).toBe(false)
    factory.stop()
  })
})

test('the copy of an object that kubectl keeps in an annotation is not cached', async () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', team: 'shop' }
  const written = { ...thing('a', 1), metadata: { ...thing('a', 1).metadata, annotations } }
  source.fallback = { items: [written], resourceVersion: '10' }
  reflector.start()
  await settle()
  source.last.push({ type: 'MODIFIED', object: { ...written, metadata: { ...written.metadata, resourceVersion: '11' } } })
  await settle()
  const [cached] = [...cache.list()]
  expect(cached?.metadata).toMatchObject({ resourceVersion: '11', annotations: { team: 'shop' } })
  expect(Object.keys(cached?.metadata.annotations ?? {})).toEqual(['team'])
})
