import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import type { Item } from './item.ts'
import type { Level } from './level.ts'
import type { Reconcile, Requeue } from './reconciler.ts'
import type { OperatorMetrics } from '../metrics.ts'
import { WorkQueue } from './work-queue.ts'

const item = (name: string): Item => ({ kind: 'ApiKey', ref: { namespace: 'shop', name } })

let clock: ManualClock
let log: string[]
let runs: string[]
let queue: WorkQueue
let ends: Map<string, (end: Requeue) => void>
let results: string[]
/** What a run returns when it ends. */
let answer: Requeue

const kinds: Record<string, Reconcile> = {
  ApiKey: ({ name }, level) => {
    runs.push(`${name} ${level}`)
    return new Promise((resolve) => ends.set(name, resolve))
  },
}

async function end(name: string): Promise<void> {
  ends.get(name)?.(answer)
  await settle()
}

beforeEach(() => {
  clock = new ManualClock()
  log = []
  runs = []
  ends = new Map()
  results = []
  answer = {}
  const metrics: OperatorMetrics['queue'] = {
    depth: () => undefined,
    added: (level) => log.push(`added ${level}`),
    retried: () => log.push('retried'),
    waited: (level, seconds) => log.push(`waited ${level} ${seconds}`),
    worked: (seconds) => log.push(`worked ${seconds}`),
    reconciled: (_kind, outcome, _seconds, panic) => results.push(panic ? 'panic' : outcome),
    watching: () => undefined,
  }
  queue = new WorkQueue({ clock, metrics, workers: 2, kinds })
})

/** Ends the runs so far and returns them. */
async function take(): Promise<string[]> {
  await settle()
  const taken = runs.splice(0)
  for (const run of taken) await end(run.split(' ')[0] ?? '')
  return taken
}

async function takeAll(): Promise<string[]> {
  const all: string[] = []
  for (let some = await take(); some.length > 0; some = await take()) all.push(...some)
  return all
}

describe('a level that is held', () => {
  test('starts one run per 100 ms, in turns of the namespaces, is read again every 20 ms, and delays no other level', async () => {
    let held: readonly Level[] = ['background']
    queue = new WorkQueue({
      clock,
      workers: 2,
      held: () => held,
      kinds,
    })
    queue.start()
    for (const name of ['b1', 'b2', 'b3']) queue.add(item(name), 'background')
    queue.add({ kind: 'ApiKey', ref: { namespace: 'other', name: 'o' } }, 'background')
    queue.add(item('c'), 'create')
    expect(await takeAll()).toEqual(['c create', 'b1 background'])
    await clock.advance(99)
    expect(runs).toEqual([])
    await clock.advance(21)
    expect(runs).toEqual(['o background'])
    await clock.advance(100)
    expect(runs).toEqual(['o background', 'b2 background'])
    runs = []
    held = []
    await clock.advance(20)
    expect(runs).toEqual([])
    await end('o')
    expect(await take()).toEqual(['b3 background'])
    void queue.stop(0)
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })
})

test('a held level starts a run of a tenant with little work within 20 ms, and its storm goes on at one run per 100 ms', async () => {
  queue = new WorkQueue({ clock, workers: 2, held: () => ['create'], kinds })
  for (let at = 0; at < 50; at += 1) queue.add(item(`storm-${at}`), 'create')
  queue.start()
  await take()
  await clock.advance(5)
  queue.add({ kind: 'ApiKey', ref: { namespace: 'other', name: 'quiet' } }, 'create')
  await clock.advance(15)
  expect(runs).toEqual(['quiet create'])
  await take()
  const started = { quiet: 0, storm: 0 }
  for (let at = 0; at < 50; at += 1) {
    if (at % 2 === 0) queue.add({ kind: 'ApiKey', ref: { namespace: 'other', name: `quiet-${at}` } }, 'create')
    await clock.advance(20)
    for (const run of await take()) started[run.startsWith('quiet') ? 'quiet' : 'storm'] += 1
  }
  expect(started.quiet).toBe(25)
  expect(started.storm).toBeGreaterThanOrEqual(4) // each run of the level counts towards one in 100 ms, and the tenants take turns
  expect(started.storm).toBeLessThanOrEqual(11)
  void queue.stop(0)
})

describe('adding', () => {
  test('no item runs before the start, and waiting items then run in the order of levels', async () => {
    queue.add(item('b'), 'background')
    queue.add(item('c'), 'create')
    queue.add(item('u'), 'urgent')
    expect(runs).toEqual([])
    queue.start()
    expect(await takeAll()).toEqual(['u urgent', 'c create', 'b background'])
  })

  test('an item added during its run runs again after that run, at the highest requested level', async () => {
    queue.start()
    queue.add(item('a'), 'create')
    await settle()
    queue.add(item('a'), 'background')
    queue.add(item('a'), 'urgent')
    queue.add(item('a'), 'change')
    expect(await take()).toEqual(['a create'])
    expect(await takeAll()).toEqual(['a urgent'])
    expect(queue.active).toBe(0)
  })

  test('a suspension during a storm starts at once, on a slot for urgent items only', async () => {
    queue.start()
    for (let index = 0; index < 2_000; index += 1) queue.add(item(`new-${index}`), 'create')
    await settle()
    expect(runs).toHaveLength(2)
    queue.add(item('suspended'), 'urgent')
    await settle()
    expect(runs.at(-1)).toBe('suspended urgent')
  })
})

test('the caller that adds items is not interrupted, and the highest of the items added together runs first', async () => {
  queue.start()
  queue.add(item('a'), 'background')
  queue.add(item('b'), 'create')
  queue.add(item('c'), 'change')
  expect(runs).toEqual([])
  await settle()
  expect(runs).toEqual(['c change', 'b create'])
})

describe('delayed adds', () => {
  beforeEach(() => queue.start())

  test('of several delays for an item the earliest counts, at the highest level', async () => {
    queue.addAfter(item('a'), 5_000, 'urgent')
    queue.addAfter(item('a'), 1_000, 'background')
    queue.addAfter(item('a'), 9_000, 'create')
    await clock.advance(999)
    expect(runs).toEqual([])
    await clock.advance(1)
    expect(await takeAll()).toEqual(['a urgent'])
    await clock.advance(60_000)
    expect(runs).toEqual([])
  })

  test('a run that starts earlier replaces the delay', async () => {
    queue.addAfter(item('a'), 5_000, 'change')
    queue.add(item('a'), 'change')
    expect(await takeAll()).toHaveLength(1)
    expect(clock.pending).toBe(0)
  })

  test('a delay set during a run stays', async () => {
    queue.add(item('a'), 'change')
    await settle()
    queue.addAfter(item('a'), 5_000, 'background')
    await take()
    await clock.advance(5_000)
    expect(await takeAll()).toEqual(['a background'])
  })
})

test('waiting and working times are measured, and unfinished work is visible', async () => {
  queue.add(item('a'), 'change')
  await clock.advance(2_000)
  queue.start()
  await clock.advance(3_000)
  expect(queue.unfinished()).toEqual({ totalSeconds: 3, longestSeconds: 3 })
  await end('a')
  expect(log).toEqual(['added change', 'waited change 2', 'worked 3'])
})

test('a stop drops waiting items, takes no others, and ends after running items', async () => {
  const levels: Level[] = ['urgent', 'change', 'background']
  queue.start()
  queue.add(item('a'), 'change')
  queue.addAfter(item('later'), 10, 'change')
  await settle()
  const stopped = queue.stop(1_000)
  await clock.advance(100)
  for (const level of levels) queue.add(item('b'), level)
  await end('a')
  expect(await stopped).toBe(true)
  expect(runs).toEqual(['a change'])
  expect(clock.pending).toBe(0)
})

describe('the end of a run', () => {
  beforeEach(() => queue.start())

  test('enqueues the object again after the time and at the level that the run returned', async () => {
    queue.add(item('a'), 'change')
    await settle()
    answer = { requeueAfterMs: 5_000 }
    await end('a')
    await clock.advance(4_999)
    expect(runs).toEqual(['a change'])
    answer = { requeueAfterMs: 1_000, at: 'background' }
    await clock.advance(1)
    await end('a')
    answer = {}
    await clock.advance(1_000)
    await end('a')
    expect(runs).toEqual(['a change', 'a change', 'a background'])
    expect(results).toEqual(['requeue_after', 'requeue_after', 'success'])
  })

  test('counts failures and bugs, which run again after their pause', async () => {
    queue.add(item('a'), 'urgent')
    await settle()
    answer = { requeueAfterMs: 1_000, failure: 'bug' }
    await end('a')
    answer = { at: 'background', failure: 'step' }
    await clock.advance(1_000)
    await end('a')
    answer = {}
    await end('a')
    expect(runs).toEqual(['a urgent', 'a urgent', 'a background'])
    expect(results).toEqual(['panic', 'error', 'success'])
    expect(log.filter((line) => line === 'retried')).toHaveLength(2)
  })
})

test('a tenant with a bound takes no more runs in the background, and as many as there are at other levels', async () => {
  queue = new WorkQueue({ clock, workers: 8, kinds, boundsOf: (tenant) => (tenant === 'shop' ? [{ name: tenant, most: 1 }] : []) })
  for (const name of ['a', 'b', 'c']) queue.add(item(name), 'background')
  for (const name of ['d', 'e']) queue.add(item(name), 'change')
  queue.start()
  await settle()
  expect(runs.splice(0)).toEqual(['d change', 'e change', 'a background'])
  await end('a')
  expect(runs.splice(0)).toEqual(['b background'])
  await end('b')
  expect(runs).toEqual(['c background'])
})

test('tenants that share a bound take its places in turns', async () => {
  queue = new WorkQueue({ clock, workers: 8, kinds, boundsOf: () => [{ name: 'models', most: 2 }] })
  const of = (namespace: string, name: string): Item => ({ kind: 'ApiKey', ref: { namespace, name } })
  for (const name of ['a1', 'a2', 'a3', 'a4']) queue.add(of('a', name), 'background')
  for (const name of ['b1', 'b2']) queue.add(of('b', name), 'background')
  queue.start()
  const taken = [await take(), await take(), await take()]
  expect(taken.map((some) => some.length)).toEqual([2, 2, 2])
  expect(taken.flat()).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'a4'].map((name) => `${name} background`))
})

test('a place of a tenant with a bound rests for as long as its run took: a slow API server is asked for less', async () => {
  const starts: number[] = []
  const run: Reconcile = async () => {
    starts.push(clock.monotonic() - startedAtMs)
    const { promise, resolve } = Promise.withResolvers<void>()
    clock.after(callMs, resolve)
    await promise
    return {}
  }
  const startedAtMs = clock.monotonic()
  let callMs = 10
  queue = new WorkQueue({ clock, kinds: { ApiKey: run }, boundsOf: () => [{ name: 'all', most: 2 }] })
  for (let at = 0; at < 8; at += 1) queue.add(item(`key-${at}`), 'background')
  queue.start()
  await clock.advance(30)
  expect(starts.splice(0)).toEqual([0, 0, 20, 20])
  callMs = 100
  await clock.advance(250)
  expect(starts).toEqual([40, 40, 240, 240])
})

describe('beside a namespace whose calls take 10 s each', () => {
  /** Longest time from a new object of another namespace to the end of its status, ms. @param slow objects of the slow namespace */
  async function longestMs(slow: number): Promise<number> {
    const took: number[] = []
    const begun = new Map<string, number>()
    const run: Reconcile = async ({ namespace, name }, level) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      clock.after(namespace === 'slow' ? 10_000 : 5, resolve)
      await promise
      if (level !== 'background') return { at: 'background' }
      if (namespace !== 'slow') took.push(clock.monotonic() - (begun.get(name) ?? 0))
      return {}
    }
    queue = new WorkQueue({ clock, kinds: { ApiKey: run } })
    queue.start()
    for (let at = 0; at < slow; at += 1)
      queue.add({ kind: 'ApiKey', ref: { namespace: 'slow', name: `slow-${at}` } }, at % 3 === 0 ? 'change' : 'create')
    for (let at = 0; at < 100; at += 1) {
      await clock.advance(200)
      begun.set(`key-${at}`, clock.monotonic())
      queue.add({ kind: 'ApiKey', ref: { namespace: `team-${at}`, name: `key-${at}` } }, 'create')
    }
    await clock.advance(60_000)
    expect(took).toHaveLength(100)
    void queue.stop(0)
    return Math.max(...took)
  }

  test('new objects of other namespaces take no longer than alone', async () => {
    expect(await longestMs(300)).toBe(await longestMs(0))
  })
})
