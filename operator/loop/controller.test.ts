import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import { KubeError, type ObjectRef } from '#kube/port.ts'
import { Controller, type KindHandlers } from './controller.ts'
import type { Item } from './item.ts'
import type { Level } from './level.ts'

interface World {
  readonly controller: Controller
  readonly clock: ManualClock
  readonly results: string[]
  /** Messages of the log at level warn. */
  readonly warnings: string[]
}

function worldOf(reconcile: KindHandlers['reconcile'], workers = 4): World {
  const clock = new ManualClock()
  const results: string[] = []
  const warnings: string[] = []
  const write = (line: string): void => void warnings.push((JSON.parse(line) as { msg: string }).msg)
  const nothing = (): void => undefined
  const controller = new Controller({
    kinds: { ApiKey: { reconcile } },
    workers,
    clock,
    logger: pino({ level: 'warn' }, { write }),
    random: () => 0.5,
    metrics: {
      queue: { depth: nothing, added: nothing, retried: nothing, waited: nothing, worked: nothing },
      reconciled: (_kind, outcome, _seconds, panic) => results.push(panic ? 'panic' : outcome),
      watching: nothing,
    },
  })
  controller.start()
  return { controller, clock, results, warnings }
}

const ref: ObjectRef = { namespace: 'shop', name: 'a' }
const a: Item = { kind: 'ApiKey', ref }

describe('runs', () => {
  test('an object is never reconciled twice at once, and a change during a run causes another run', async () => {
    let running = 0
    let most = 0
    let runs = 0
    const ends: Array<() => void> = []
    const { controller } = worldOf(async () => {
      runs += 1
      most = Math.max(most, (running += 1))
      await new Promise<void>((resolve) => ends.push(resolve))
      running -= 1
    })
    for (let time = 0; time < 3; time += 1) {
      controller.enqueue(a, 'change')
      await settle()
    }
    expect(runs).toBe(1)
    ends.shift()?.()
    await settle()
    ends.shift()?.()
    await settle()
    expect({ runs, most }).toEqual({ runs: 2, most: 1 })
  })

  test('kind, ref and level arrive unchanged, for cluster-scoped objects too', async () => {
    const seen: Array<readonly [ObjectRef, Level]> = []
    const { controller } = worldOf(async (...run) => void seen.push(run))
    const gold = { namespace: '', name: 'plan.gold' }
    controller.enqueue(a, 'urgent')
    controller.enqueue({ kind: 'ApiKey', ref: gold }, 'background')
    await settle()
    expect(seen).toEqual([
      [ref, 'urgent'],
      [gold, 'background'],
    ])
  })

  test('requeueAfterMs enqueues the object again after that time, at its level or the given level', async () => {
    const levels: Level[] = []
    const answers = [{ requeueAfterMs: 5_000 }, { requeueAfterMs: 1_000, at: 'background' as const }, {}]
    const { controller, clock, results } = worldOf(async (_ref, level) => {
      levels.push(level)
      return answers.shift() ?? {}
    })
    controller.enqueue(a, 'change')
    await clock.advance(4_999)
    expect(levels).toHaveLength(1)
    await clock.advance(1)
    await clock.advance(1_000)
    expect(levels).toEqual(['change', 'change', 'background'])
    expect(results).toEqual(['requeue_after', 'requeue_after', 'success'])
  })

  test('a run that hands down runs again at once at the lower level, behind what is more urgent', async () => {
    const runs: string[] = []
    const { controller } = worldOf(async ({ name }, level) => {
      runs.push(`${name} ${level}`)
      return name === 'a' && level === 'urgent' ? { at: 'background' } : {}
    }, 1)
    controller.enqueue(a, 'urgent')
    controller.enqueue({ ...a, ref: { ...ref, name: 'b' } }, 'change')
    await settle()
    expect(runs.toSorted()).toEqual(['a background', 'a urgent', 'b change'])
  })

  test('a deleted object that was forgotten comes neither from its timer nor from its back-off', async () => {
    let runs = 0
    const { controller, clock } = worldOf(async () => {
      runs += 1
      throw new Error('no')
    })
    controller.enqueue(a, 'change')
    await settle()
    controller.forget(a)
    await clock.advance(600_000)
    expect(runs).toBe(1)
    expect(clock.pending).toBe(0)
  })

  test('stop waits for running reconciles, starts no new ones, and returns false after its time limit', async () => {
    const ends: Array<() => void> = []
    let runs = 0
    const { controller, clock } = worldOf(async () => {
      runs += 1
      await new Promise<void>((resolve) => ends.push(resolve))
    }, 1)
    controller.enqueue(a, 'change')
    controller.enqueue({ ...a, ref: { ...ref, name: 'b' } }, 'change')
    await settle()
    const tooShort = controller.stop(1_000)
    await clock.advance(1_000)
    expect(await tooShort).toBe(false)
    const stopped = controller.stop(25_000)
    ends.shift()?.()
    expect(await stopped).toBe(true)
    expect(runs).toBe(1)
  })
})

describe('failures', () => {
  test('a failing object runs again after 1 s, then 2 s, and a success ends the back-off', async () => {
    let fail = true
    let runs = 0
    const { controller, clock, results, warnings } = worldOf(async () => {
      runs += 1
      if (fail) throw new Error('not yet')
    })
    controller.enqueue(a, 'change')
    await clock.advance(999)
    expect(runs).toBe(1)
    await clock.advance(1)
    expect(runs).toBe(2)
    await clock.advance(1_999)
    expect(runs).toBe(2)
    fail = false
    await clock.advance(1)
    expect(results).toEqual(['error', 'error', 'success'])
    expect(warnings).toEqual(Array(2).fill('reconcile failed: not yet'))
    await clock.advance(600_000)
    expect(runs).toBe(3)
  })

  test('a revocation that fails stays urgent', async () => {
    const levels: Level[] = []
    const { controller, clock } = worldOf(async (_ref, level) => {
      levels.push(level)
      if (levels.length < 3) throw new Error('not yet')
    })
    controller.enqueue(a, 'urgent')
    await clock.advance(10_000)
    expect(levels).toEqual(['urgent', 'urgent', 'urgent'])
  })

  test('a Retry-After of the server is respected', async () => {
    let runs = 0
    const { controller, clock } = worldOf(async () => {
      if ((runs += 1) === 1) throw new KubeError('TooManyRequests', 429, 'slow down', { retryAfterSeconds: 20 })
    })
    controller.enqueue(a, 'change')
    await clock.advance(19_999)
    expect(runs).toBe(1)
    await clock.advance(1)
    expect(runs).toBe(2)
  })

  test('a conflict is tried again after a short wait five times, and only then backs off and is reported', async () => {
    let runs = 0
    const { controller, clock, warnings } = worldOf(async () => {
      runs += 1
      throw new KubeError('Conflict', 409, 'conflict')
    })
    controller.enqueue(a, 'change')
    await settle()
    expect(runs).toBe(1)
    await clock.advance(300)
    expect({ runs, reported: warnings.length }).toEqual({ runs: 6, reported: 1 })
    await clock.advance(1_000)
    expect(runs).toBe(7)
  })

  test('a conflict runs again at once when the change arrives', async () => {
    let runs = 0
    const { controller } = worldOf(async () => {
      if ((runs += 1) === 1) throw new KubeError('Conflict', 409, 'conflict')
    })
    controller.enqueue(a, 'change')
    await settle()
    controller.enqueue(a, 'change')
    await settle()
    expect(runs).toBe(2)
  })

  test("the deletion of the object's own namespace ends the tries; the deletion of another namespace does not", async () => {
    let namespace = 'shop'
    let runs = 0
    const { controller, clock, results, warnings } = worldOf(async () => {
      runs += 1
      throw new KubeError('NamespaceTerminating', 403, 'terminating', { namespace })
    })
    controller.enqueue(a, 'change')
    await clock.advance(600_000)
    expect({ runs, results, warnings }).toEqual({ runs: 1, results: ['success'], warnings: [] })
    namespace = 'headgate'
    controller.enqueue(a, 'change')
    await clock.advance(1_000)
    expect(runs).toBe(3)
    expect(warnings).toHaveLength(2)
  })

  test('a bug is counted as a panic, and a failure that cannot be reported does not stop the controller', async () => {
    const { controller, results } = worldOf(async () => {
      throw new TypeError('undefined is not a function')
    })
    controller.enqueue(a, 'change')
    controller.enqueue({ kind: 'Unknown', ref }, 'change')
    await settle()
    expect(results).toEqual(['panic', 'panic'])
  })
})
