import { describe, expect, test } from 'vitest'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import type { ObjectRef } from '#kube/port.ts'
import { createController } from './controller.ts'
import type { WorkQueue } from './work-queue.ts'
import type { Item } from './item.ts'
import type { Level } from './level.ts'
import type { Reconcile, Requeue } from './reconciler.ts'

interface World {
  readonly controller: WorkQueue
  readonly clock: ManualClock
  readonly results: string[]
  readonly retries: true[]
}

function worldOf(reconcile: Reconcile, workers = 4): World {
  const clock = new ManualClock()
  const results: string[] = []
  const retries: true[] = []
  const nothing = (): void => undefined
  const controller = createController({
    kinds: { ApiKey: reconcile },
    workers,
    clock,
    metrics: {
      queue: { depth: nothing, added: nothing, retried: () => void retries.push(true), waited: nothing, worked: nothing },
      reconciled: (_kind, outcome, _seconds, panic) => results.push(panic ? 'panic' : outcome),
      watching: nothing,
    },
  })
  controller.start()
  return { controller, clock, results, retries }
}

const ref: ObjectRef = { namespace: 'shop', name: 'a' }
const a: Item = { kind: 'ApiKey', ref }

describe('runs', () => {
  test('kind, ref and level arrive unchanged, for cluster-scoped objects too', async () => {
    const seen: Array<readonly [ObjectRef, Level]> = []
    const { controller } = worldOf(async (...run) => {
      seen.push(run)
      return {}
    })
    const gold = { namespace: '', name: 'plan.gold' }
    controller.add(a, 'urgent')
    controller.add({ kind: 'ApiKey', ref: gold }, 'background')
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
    controller.add(a, 'change')
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
    controller.add(a, 'urgent')
    controller.add({ ...a, ref: { ...ref, name: 'b' } }, 'change')
    await settle()
    expect(runs.toSorted()).toEqual(['a background', 'a urgent', 'b change'])
  })
})

test('a failure and a bug are counted, and the object runs again after the pause that the reconcile asked for', async () => {
  const answers: Requeue[] = [
    { requeueAfterMs: 1_000, failure: 'bug' },
    { at: 'background', failure: 'step' },
  ]
  const levels: Level[] = []
  const { controller, clock, results, retries } = worldOf(async (_ref, level) => {
    levels.push(level)
    return answers.shift() ?? {}
  })
  controller.add(a, 'urgent')
  await clock.advance(999)
  expect(levels).toEqual(['urgent'])
  await clock.advance(1)
  expect(levels).toEqual(['urgent', 'urgent', 'background'])
  expect(results).toEqual(['panic', 'error', 'success'])
  expect(retries).toHaveLength(2)
})
