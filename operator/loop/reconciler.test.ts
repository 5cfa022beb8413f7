import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KubeError, type KubeErrorCode, type ObjectRef } from '#kube/port.ts'
import type { Level } from './level.ts'
import { createReconcile, firstAnswer, type Reconcile, type Reconciled, type StepBase, type Wait } from './reconciler.ts'

const REF: ObjectRef = { namespace: 'shop', name: 'bot' }

/** The remaining steps of an object, in order. An applied step is removed. */
interface Plan {
  steps: Array<StepBase | Wait>
  report: StepBase | undefined
  nextChangeAtMs: number | undefined
  hadFailures: boolean
}

describe('a reconcile', () => {
  let clock: ManualClock
  let plan: Plan | undefined
  let log: string[]
  let warnings: unknown[]
  let fail: (step: string) => Error | undefined
  let reconcile: Reconcile
  let isLeading: boolean

  const step = (what: string, level: Level = 'change'): StepBase => ({ do: what, level })
  const refusal = (code: KubeErrorCode = 'Forbidden'): KubeError => new KubeError(code, 403, `said ${code}`)

  const kind: Reconciled<Plan, StepBase> = {
    name: 'Toy',
    observe: () => plan,
    nextStep: ({ steps }) => steps[0],
    report: ({ report }) => report,
    async apply({ do: what }) {
      const error = fail(what)
      if (error) throw error
      log.push(what)
      if (plan?.steps[0]?.do === what) plan.steps.shift()
      else if (plan) plan.report = undefined
    },
    waits: () => void log.push('(waits)'),
    nextChangeAtMs: ({ nextChangeAtMs }) => nextChangeAtMs,
    failed: (_ref, { do: what }, error) => void log.push(`(${what} failed: ${error.code})`),
    succeeded: (_ref, { do: what }) => void log.push(`(${what} done)`),
    settled() {
      const { hadFailures = false } = plan ?? {}
      if (plan) plan.hadFailures = false
      log.push('(settled)')
      return hadFailures
    },
  }

  beforeEach(() => {
    clock = new ManualClock()
    log = []
    warnings = []
    fail = () => undefined
    plan = { steps: [], report: undefined, nextChangeAtMs: undefined, hadFailures: false }
    const record = (...parts: unknown[]): void => void warnings.push(parts)
    isLeading = true
    const assertLeading = (): void => {
      if (!isLeading) throw new Error('not leading')
    }
    const leader = { assertLeading }
    reconcile = createReconcile(kind, { clock, random: () => 0.5, leader, log: { info: record, warn: record, error: record } as never })
  })

  const planned = (...steps: Array<StepBase | Wait>): void => void (plan = { ...(plan as Plan), steps })
  const applied = (): string[] => log.filter((line) => !line.startsWith('('))

  test('applies one step after the other until no step is left', async () => {
    planned(step('a'), step('b'))
    expect(await reconcile(REF, 'change')).toEqual({})
    expect(log).toEqual(['a', '(a done)', 'b', '(b done)', '(settled)'])
  })

  test('applies no step while another process leads', async () => {
    planned(step('a'))
    isLeading = false
    expect(await reconcile(REF, 'change')).toMatchObject({ failure: 'step' })
    expect(log).toEqual([])
  })

  test('does nothing for an object that does not exist', async () => {
    plan = undefined
    expect(await reconcile(REF, 'change')).toEqual({})
    expect(log).toEqual([])
  })

  test('enqueues a less urgent step at its own level, and applies a more urgent step at once', async () => {
    planned(step('revoke', 'urgent'), step('read', 'change'), step('report', 'background'))
    expect(await reconcile(REF, 'urgent')).toEqual({ at: 'change' })
    expect(applied()).toEqual(['revoke'])
    expect(await reconcile(REF, 'change')).toEqual({ at: 'background' })
    expect(applied()).toEqual(['revoke', 'read'])
    planned(step('revoke', 'urgent'), step('report', 'background'))
    expect(await reconcile(REF, 'background')).toEqual({})
    expect(applied()).toEqual(['revoke', 'read', 'revoke', 'report'])
  })

  test('waits for an event, or for as long as the check says, at the level of the run', async () => {
    planned({ do: 'wait' })
    expect(await reconcile(REF, 'urgent')).toEqual({})
    planned({ do: 'wait', forMs: 700 })
    expect(await reconcile(REF, 'urgent')).toEqual({ requeueAfterMs: 700, at: 'urgent' })
    expect(log).toEqual(['(waits)', '(waits)'])
  })

  test('runs again when time alone changes the outcome, with or without a wait', async () => {
    plan = { ...(plan as Plan), nextChangeAtMs: clock.now() + 5_000 }
    expect(await reconcile(REF, 'change')).toEqual({ requeueAfterMs: 5_000, at: 'change' })
    planned({ do: 'wait', forMs: 9_000 })
    expect(await reconcile(REF, 'change')).toEqual({ requeueAfterMs: 5_000, at: 'change' })
    planned({ do: 'wait', forMs: 100 })
    expect(await reconcile(REF, 'change')).toEqual({ requeueAfterMs: 100, at: 'change' })
  })

  test('never requests a run without a pause', async () => {
    planned({ do: 'wait', forMs: 0 })
    expect(await reconcile(REF, 'change')).toEqual({ requeueAfterMs: 1, at: 'change' })
  })

  test('runs once more when an object settles whose status still shows a failure', async () => {
    plan = { ...(plan as Plan), hadFailures: true }
    expect(await reconcile(REF, 'change')).toEqual({ at: 'background' })
    expect(await reconcile(REF, 'background')).toEqual({})
  })

  test('ends as a bug if the checks never end, instead of an endless loop', async () => {
    planned(...Array.from({ length: 30 }, () => step('again')))
    expect(await reconcile(REF, 'change')).toMatchObject({ failure: 'bug' })
    const message = 'Toy shop/bot does not settle in 24 steps; the next would be again'
    expect(warnings).toMatchObject([[{ err: { message } }, 'reconcile met a bug']])
  })

  describe('with a failed step', () => {
    beforeEach(() => {
      planned(step('write'))
      fail = (what) => (what === 'write' ? refusal() : undefined)
    })

    test('remembers the error, logs it with the time of the next try, and writes the status in the background', async () => {
      plan = { ...(plan as Plan), report: step('report', 'background') }
      expect(await reconcile(REF, 'change')).toEqual({ at: 'background', failure: 'step' })
      expect(log).toEqual(['(write failed: Forbidden)'])
      expect(warnings).toEqual([[{ kind: 'Toy', object: 'shop/bot', step: 'write', retryInMs: 1_000 }, 'write failed: said Forbidden']])
      expect(await reconcile(REF, 'background')).toEqual({ requeueAfterMs: 1_000, at: 'change' })
      expect(applied()).toEqual(['report'])
    })

    test('does not try again before its time, even if it is enqueued often', async () => {
      await reconcile(REF, 'change')
      fail = () => undefined
      await clock.advance(999)
      expect(await reconcile(REF, 'urgent')).toEqual({ requeueAfterMs: 1, at: 'change' })
      expect(applied()).toEqual([])
      await clock.advance(1)
      await reconcile(REF, 'change')
      expect(applied()).toEqual(['write'])
    })

    test('tries again at the level of the step, and so does not wait for background work', async () => {
      await reconcile(REF, 'change')
      expect(await reconcile(REF, 'background')).toEqual({ requeueAfterMs: 1_000, at: 'change' })
    })

    test('does not delay a more urgent step of another check', async () => {
      await reconcile(REF, 'change')
      planned(step('revoke', 'urgent'), step('write'))
      await reconcile(REF, 'urgent')
      expect(applied()).toEqual(['revoke'])
    })

    test('waits longer after each failure, and starts again with the first wait after a success', async () => {
      for (const waitMs of [1_000, 2_000, 4_000]) {
        await reconcile(REF, 'change')
        expect(await reconcile(REF, 'change')).toEqual({ requeueAfterMs: waitMs, at: 'change' })
        await clock.advance(waitMs)
      }
      fail = () => undefined
      await reconcile(REF, 'change')
      planned(step('write'))
      fail = () => refusal()
      await reconcile(REF, 'change')
      expect(await reconcile(REF, 'change')).toEqual({ requeueAfterMs: 1_000, at: 'change' })
    })

    test('waits separately for a failed status write', async () => {
      plan = { ...(plan as Plan), report: step('report', 'background') }
      fail = () => refusal()
      await reconcile(REF, 'change')
      expect(await reconcile(REF, 'background')).toEqual({ at: 'background', failure: 'step' })
      expect(await reconcile(REF, 'background')).toEqual({ requeueAfterMs: 1_000, at: 'change' })
    })

    test('forgets the failures of a deleted object', async () => {
      await reconcile(REF, 'change')
      plan = undefined
      await reconcile(REF, 'change')
      plan = { steps: [step('write')], report: undefined, nextChangeAtMs: undefined, hadFailures: false }
      fail = () => undefined
      await reconcile(REF, 'change')
      expect(applied()).toEqual(['write'])
    })

    test('tries a conflict again within milliseconds, without a report', async () => {
      fail = () => refusal('Conflict')
      await reconcile(REF, 'change')
      expect(log).toEqual([])
      expect(warnings).toEqual([])
      expect(await reconcile(REF, 'background')).toEqual({ requeueAfterMs: 20, at: 'change' })
    })

    test('waits as long as the server says', async () => {
      fail = () => new KubeError('TooManyRequests', 429, 'slow down', { retryAfterSeconds: 20 })
      await reconcile(REF, 'change')
      expect(await reconcile(REF, 'background')).toEqual({ requeueAfterMs: 20_000, at: 'change' })
    })

    test('counts no failure where a namespace is being deleted', async () => {
      fail = () => refusal('NamespaceTerminating')
      expect(await reconcile(REF, 'change')).toEqual({ at: 'background' })
    })

    test('runs again at its level, with growing pauses, after an error that is not from the API server', async () => {
      fail = () => new Error('not yet')
      expect(await reconcile(REF, 'change')).toEqual({ requeueAfterMs: 1_000, at: 'change', failure: 'step' })
      fail = () => new TypeError('undefined is not a function')
      expect(await reconcile(REF, 'change')).toEqual({ requeueAfterMs: 2_000, at: 'change', failure: 'bug' })
      fail = () => undefined
      await reconcile(REF, 'change')
      planned(step('write'))
      fail = () => new Error('not yet')
      expect(await reconcile(REF, 'change')).toEqual({ requeueAfterMs: 1_000, at: 'change', failure: 'step' })
    })
  })
})

test('the first check with an answer decides, and later checks are not called', () => {
  const asked: string[] = []
  const check = (name: string, answer?: StepBase) => (): StepBase | undefined => {
    asked.push(name)
    return answer
  }
  const first = { do: 'b', level: 'change' } as const
  expect(firstAnswer([check('a'), check('b', first), check('c', { do: 'c', level: 'urgent' })], {})).toBe(first)
  expect(asked).toEqual(['a', 'b'])
  expect(firstAnswer([check('d')], {})).toBeUndefined()
})
