import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import type { AnnotationListener } from '#kube/leader.ts'
import {
  encodeRequest,
  PROGRESS_ANNOTATION,
  readProgress,
  REQUEST_ANNOTATION,
  RESULT_ANNOTATION,
  serveUninstalls,
} from './uninstall-listener.ts'

const MINUTE = 60_000

describe('the leader while Headgate is uninstalled', () => {
  let clock: ManualClock
  let annotations: Record<string, string>
  let releases: number
  let fail: { release?: Error; annotate?: Error }
  let errors: string[]
  let changed: AnnotationListener
  let ended: string[]
  let released: number

  beforeEach(() => {
    clock = new ManualClock()
    annotations = {}
    releases = 0
    fail = {}
    errors = []
    ended = []
    released = 0
    const record = (line: unknown): void => void errors.push(String(line))
    serveUninstalls({
      clock,
      log: { info: () => undefined, warn: record, error: record } as never,
      onReleased: () => (released += 1),
      end: (why) => void ended.push(why),
      operator: {
        async release(onProgress) {
          releases += 1
          onProgress?.({ done: 0, total: 6 })
          onProgress?.({ done: 1, total: 6 })
          await settle()
          return fail.release ? Promise.reject(fail.release) : { released: 5, failed: 1 }
        },
      },
      lease: {
        onAnnotations: (callback) => void (changed = callback),
        async annotate(patch) {
          if (fail.annotate) throw fail.annotate
          for (const [name, value] of Object.entries(patch)) {
            if (value === null) delete annotations[name]
            else annotations[name] = value
          }
        },
      },
    })
  })

  async function see(change: Readonly<Record<string, string>> = {}): Promise<void> {
    Object.assign(annotations, change)
    changed({ ...annotations })
    await settle()
  }
  const request = (id = 'one', agoMs = 0): Record<string, string> => ({
    [REQUEST_ANNOTATION]: encodeRequest(id, clock.now() - agoMs),
  })

  test('releases every ApiKey once, and writes the result to the Lease', async () => {
    await see(request())
    expect([annotations[RESULT_ANNOTATION], released]).toEqual(['one 5 1', 1])
    await see()
    await see({ unrelated: 'x' })
    expect(releases).toBe(1)
  })

  test('does nothing without a request', async () => {
    await see({ unrelated: 'x' })
    expect(releases).toBe(0)
    expect(annotations).toEqual({ unrelated: 'x' })
  })

  test('does nothing for a request that another leader has served', async () => {
    await see({ ...request(), [RESULT_ANNOTATION]: 'one 5 0' })
    expect(releases).toBe(0)
  })

  test('serves a request even if the Lease has the result of an earlier request', async () => {
    await see({ ...request('two'), [RESULT_ANNOTATION]: 'one 5 0' })
    expect(annotations[RESULT_ANNOTATION]).toBe('two 5 1')
  })

  test('removes an abandoned request, so that a new installation does not uninstall itself', async () => {
    await see({ ...request('one', 3_600_000), [RESULT_ANNOTATION]: 'zero 1 0', unrelated: 'x' })
    expect(releases).toBe(0)
    expect(annotations).toEqual({ unrelated: 'x' })
  })

  test('serves a request that appears while it leads, although the clock of the command is days off', async () => {
    await see()
    await see(request('one', 3 * 24 * 60 * MINUTE))
    await see({ unrelated: 'x' })
    expect([annotations[RESULT_ANNOTATION], releases]).toEqual(['one 5 1', 1])
  })

  test('serves a request whose time is days off once the command has written it again', async () => {
    await see(request('one', 3 * 24 * 60 * MINUTE))
    expect([releases, annotations[REQUEST_ANNOTATION]]).toEqual([0, undefined])
    await see(request('one', 3 * 24 * 60 * MINUTE - 20_000))
    expect([annotations[RESULT_ANNOTATION], releases]).toEqual(['one 5 1', 1])
  })

  test('logs a Lease that cannot be written, and continues', async () => {
    fail = { annotate: new Error('no answer') }
    await see(request('one', 3_600_000))
    await see(request())
    expect(errors).toEqual(['no answer', 'the uninstall was not finished (no answer)'])
  })

  test('logs a failed release, and ends, so that the next leader serves the request: this one has stopped for good', async () => {
    fail = { release: new Error('no answer') }
    await see(request())
    expect(errors).toEqual(['the uninstall was not finished (no answer)'])
    expect(annotations[RESULT_ANNOTATION]).toBeUndefined()
    expect([ended, released]).toEqual([['the uninstall was not finished; the next leader tries again'], 0])
  })

  test('writes its progress to the Lease, at most every 2 s', async () => {
    await see(request())
    expect(annotations[PROGRESS_ANNOTATION]).toBe('one 0 6')
    expect(readProgress(annotations, 'one')).toEqual({ done: 0, total: 6 })
    expect(readProgress(annotations, 'two')).toBeUndefined()
  })

  test('ends when the command has long stopped to ask, because the uninstall was cancelled, and not before', async () => {
    await see(request())
    for (let minute = 0; minute < 10; minute += 1) {
      await clock.advance(MINUTE)
      await see(request())
    }
    expect(ended).toEqual([])
    await clock.advance(3 * MINUTE)
    expect(ended).toEqual([expect.stringContaining('the uninstall was cancelled')])
    expect(releases).toBe(1)
  })
})
