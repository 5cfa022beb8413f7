import { pino } from 'pino'
import { expect, test } from 'vitest'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import { KubeError, type ObjectRef } from '../kube/port.ts'
import { Controller, type Reconcile } from './controller.ts'

function controllerOf(reconcile: Reconcile, workers = 4): { controller: Controller; clock: ManualClock; results: string[] } {
  const clock = new ManualClock()
  const results: string[] = []
  const nothing = (): void => undefined
  const controller = new Controller({
    name: 'ApiKey',
    reconcile,
    workers,
    clock,
    logger: pino({ level: 'silent' }),
    random: () => 0.5,
    metrics: {
      queue: { depth: nothing, added: nothing, retried: nothing, waited: nothing, worked: nothing },
      reconciled: (result, _seconds, panic) => results.push(panic ? 'panic' : result),
      watching: nothing,
    },
  })
  return { controller, clock, results }
}

const a: ObjectRef = { namespace: 'shop', name: 'a' }

test('an object is never reconciled twice at once, and the change that came meanwhile is seen afterwards', async () => {
  let running = 0
  let most = 0
  let runs = 0
  const ends: Array<() => void> = []
  const { controller } = controllerOf(async () => {
    runs += 1
    running += 1
    most = Math.max(most, running)
    await new Promise<void>((resolve) => ends.push(resolve))
    running -= 1
  })
  controller.start()
  controller.enqueue(a)
  await settle()
  controller.enqueue(a)
  await settle()
  expect(runs).toBe(1)
  ends.shift()?.()
  await settle()
  ends.shift()?.()
  await settle()
  expect({ runs, most }).toEqual({ runs: 2, most: 1 })
})

test('refs come through the queue unchanged, cluster-scoped ones too', async () => {
  const seen: ObjectRef[] = []
  const { controller } = controllerOf(async (ref) => void seen.push(ref))
  controller.start()
  controller.enqueue(a)
  controller.enqueue({ namespace: '', name: 'plan.gold' })
  await settle()
  expect(seen).toEqual([a, { namespace: '', name: 'plan.gold' }])
})

test('a failing reconcile comes again after 1 s, then 2 s, and success forgets it', async () => {
  let fail = true
  let runs = 0
  const { controller, clock, results } = controllerOf(async () => {
    runs += 1
    if (fail) throw new Error('not yet')
  })
  controller.start()
  controller.enqueue(a)
  await clock.advance(999)
  expect(runs).toBe(1)
  await clock.advance(1)
  expect(runs).toBe(2)
  await clock.advance(1_999)
  expect(runs).toBe(2)
  fail = false
  await clock.advance(1)
  expect(runs).toBe(3)
  expect(results).toEqual(['error', 'error', 'success'])
  await clock.advance(600_000)
  expect(runs).toBe(3)
})

test('a conflict comes again at once, five times, then waits', async () => {
  let runs = 0
  const { controller, clock } = controllerOf(async () => {
    runs += 1
    throw new KubeError('Conflict', 409, 'conflict')
  })
  controller.start()
  controller.enqueue(a)
  await settle()
  expect(runs).toBe(6)
  await clock.advance(1_000)
  expect(runs).toBe(7)
})

test('requeueAfterMs brings the object back then', async () => {
  let runs = 0
  const { controller, clock, results } = controllerOf(async () => ({ ...((runs += 1) === 1 ? { requeueAfterMs: 5_000 } : {}) }))
  controller.start()
  controller.enqueue(a)
  await clock.advance(4_999)
  expect(runs).toBe(1)
  await clock.advance(1)
  expect(runs).toBe(2)
  expect(results).toEqual(['requeue_after', 'success'])
})

test('a namespace that is being deleted ends the tries, a bug is counted as one', async () => {
  let error: Error = new KubeError('NamespaceTerminating', 403, 'terminating')
  let runs = 0
  const { controller, clock, results } = controllerOf(async () => {
    runs += 1
    throw error
  })
  controller.start()
  controller.enqueue(a)
  await clock.advance(600_000)
  expect(runs).toBe(1)
  error = new TypeError('undefined is not a function')
  controller.enqueue(a)
  await settle()
  expect(results).toEqual(['success', 'panic'])
})

test('stop waits for what is under way, starts nothing new, and says when the time was not enough', async () => {
  const ends: Array<() => void> = []
  let runs = 0
  const { controller, clock } = controllerOf(async () => {
    runs += 1
    await new Promise<void>((resolve) => ends.push(resolve))
  }, 1)
  controller.start()
  controller.enqueue(a)
  controller.enqueue({ ...a, name: 'b' })
  await settle()
  const tooShort = controller.stop(1_000)
  await clock.advance(1_000)
  expect(await tooShort).toBe(false)
  const stopped = controller.stop(25_000)
  ends.shift()?.()
  expect(await stopped).toBe(true)
  expect(runs).toBe(1)
})
