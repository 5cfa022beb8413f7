import { describe, expect, test } from 'vitest'
import { ManualClock } from '../test/support/manual-clock.ts'
import { apiKey } from '../test/support/objects.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import type { ObjectReport, Problem } from './object-report.ts'
import type { ReportChange } from './status-lines.ts'
import { StatusReporter } from './status-reporter.ts'

const EXPIRED: Problem = { headline: 'not ready', reason: 'Expired', text: 'Why.', weight: 'Warning' }
const PENDING: Problem = { ...EXPIRED, reason: 'Pending', weight: 'Passing' }

/** A reporter over reports that a test sets. */
class Desk {
  readonly clock = new ManualClock()
  readonly lines: string[] = []
  readonly fields: unknown[] = []
  readonly changes: ReportChange[] = []
  readonly #reports = new Map<string, ObjectReport | 'Deleting'>()
  readonly reporter: StatusReporter

  constructor() {
    const say = (level: string) => (fields: unknown, text?: string) => {
      this.lines.push(`${level} ${text ?? ''}`)
      this.fields.push(fields)
    }
    this.reporter = new StatusReporter({
      clock: this.clock,
      log: { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') },
      report: (_kind, name) => this.#reports.get(name),
      onReported: (changes) => void this.changes.push(...changes),
    })
  }

  set(name: string, problems: readonly Problem[], change: Partial<ObjectReport> = {}): void {
    this.#reports.set(name, { kind: 'ApiKey', name, isReady: problems.length === 0, isCurrent: true, problems, ...change })
    this.reporter.changed(apiKeyKind, name)
  }

  deleting(name: string): void {
    this.#reports.set(name, 'Deleting')
    this.reporter.changed(apiKeyKind, name)
  }

  deleted(name: string): void {
    this.#reports.delete(name)
    this.reporter.deleted(apiKeyKind, name)
  }

  /** Lines since the last call. */
  async said(ms: number): Promise<string[]> {
    await this.clock.advance(ms)
    return this.lines.splice(0)
  }
}

/** One working key that has been reported. */
async function started(): Promise<Desk> {
  const desk = new Desk()
  desk.set('shop/a', [])
  desk.reporter.start()
  expect(await desk.said(1_000)).toEqual(['info ApiKey shop/a: ready'])
  return desk
}

describe('the reporter of statuses', () => {
  test('reports nothing before the start, and then the current state', async () => {
    const desk = new Desk()
    desk.set('shop/a', [EXPIRED])
    desk.set('shop/b', [])
    expect(await desk.said(10_000)).toEqual([])
    desk.reporter.start()
    expect(await desk.said(0)).toEqual(['warn ApiKey shop/a: not ready (Expired): Why.', 'info ApiKey shop/b: ready'])
    expect(desk.changes.map(({ name }) => name)).toEqual(['shop/a', 'shop/b'])
  })

  test('reports a change within a third of a second, and its end', async () => {
    const desk = await started()
    desk.set('shop/a', [EXPIRED])
    expect(await desk.said(300)).toEqual(['warn ApiKey shop/a: not ready (Expired): Why.'])
    desk.set('shop/a', [])
    expect(await desk.said(300)).toEqual(['info ApiKey shop/a: ready now (it was Expired)'])
  })

  test('does not report a state of a moment', async () => {
    const desk = await started()
    for (let i = 0; i < 20; i++) {
      desk.set('shop/a', [EXPIRED])
      expect(await desk.said(50)).toEqual([])
      desk.set('shop/a', [])
      expect(await desk.said(50)).toEqual([])
    }
    expect(await desk.said(60_000)).toEqual([])
  })

  test('gives running work five seconds to end', async () => {
    const desk = await started()
    desk.set('shop/a', [PENDING])
    expect(desk.reporter.isSettled).toBe(false)
    expect(await desk.said(4_900)).toEqual([])
    expect(await desk.said(300)).toEqual(['warn ApiKey shop/a: not ready (Pending): Why.'])
  })

  test('waits until the operator has reconciled a new manifest', async () => {
    const desk = await started()
    desk.set('shop/b', [], { isCurrent: false, isReady: false })
    expect(desk.reporter.isSettled).toBe(false)
    expect(await desk.said(2_000)).toEqual([])
    desk.set('shop/b', [])
    expect(desk.reporter.isSettled).toBe(true)
    expect(await desk.said(300)).toEqual(['info ApiKey shop/b: ready'])
  })

  test('an object that goes back and forth is reported less often, and its last state always', async () => {
    const desk = await started()
    for (let second = 0; second < 60; second++) {
      desk.set('shop/a', second % 2 === 0 ? [EXPIRED] : [])
      await desk.clock.advance(1_000)
    }
    expect(desk.lines.length).toBeLessThan(12)
    desk.set('shop/a', [EXPIRED])
    await desk.clock.advance(120_000)
    expect(desk.lines.at(-1)).toContain('not ready')
  })

  test('reports a revoked key when its object is deleted, not when the deletion begins', async () => {
    const desk = await started()
    desk.deleting('shop/a')
    expect(await desk.said(10_000)).toEqual([])
    desk.deleted('shop/a')
    expect(await desk.said(300)).toEqual(['info ApiKey shop/a: deleted: the key is revoked, and its Secret is removed'])
  })

  test('also of a key that was about to be deleted at the start', async () => {
    const desk = new Desk()
    desk.deleting('shop/a')
    desk.reporter.start()
    desk.deleted('shop/a')
    expect(await desk.said(300)).toEqual(['info ApiKey shop/a: deleted: the key is revoked, and its Secret is removed'])
  })

  test('many objects that change in small groups share their lines after the first groups', async () => {
    const desk = await started()
    const lines: string[] = []
    for (let group = 0; group < 5; group += 1) {
      for (let at = 0; at < 8; at += 1) desk.set(`shop/k${group}-${at}`, [EXPIRED])
      lines.push(...(await desk.said(300)))
    }
    lines.push(...(await desk.said(2_000)))
    expect(lines.map((line) => /\d+ ApiKeys/.exec(line)?.[0])).toEqual(['8 ApiKeys', '8 ApiKeys', '24 ApiKeys'])
  })

  test('after a change of many objects the next lines are logged together', async () => {
    const desk = await started()
    for (let i = 0; i < 200; i++) desk.set(`shop/k${i}`, [])
    expect(await desk.said(300)).toEqual(['info 200 ApiKeys: ready (shop/k0, shop/k1, shop/k2 and 197 more)'])
    for (let i = 0; i < 200; i++) {
      desk.set(`shop/k${i}`, [EXPIRED])
      await desk.clock.advance(5)
    }
    expect(await desk.said(5_000)).toHaveLength(1)
  })

  test('a Warning is logged once, unless a condition has the same content; a Normal Event is not logged', async () => {
    const desk = await started()
    const event = (reason: string, type: 'Normal' | 'Warning' = 'Warning'): void =>
      desk.reporter.event(apiKey('a'), { type, reason, action: 'Count', note: `Note of ${reason}.` })
    event('BudgetNearlyUsed')
    event('BudgetNearlyUsed')
    event('Issued', 'Normal')
    expect(await desk.said(1_000)).toEqual([
      'warn ApiKey shop/a: BudgetNearlyUsed: Note of BudgetNearlyUsed. Raise the amount of the budget, or wait for its next window.',
    ])
    event('BudgetNearlyUsed')
    event('Expired')
    desk.set('shop/a', [EXPIRED])
    expect(await desk.said(1_000)).toEqual(['warn ApiKey shop/a: not ready (Expired): Why.'])
    await desk.clock.advance(10 * 60_000)
    event('BudgetNearlyUsed')
    expect(await desk.said(1_000), 'ten minutes later it is news again').toHaveLength(1)
  })

  test('passes the fields of a condition, a recovery and an Event on to the log', async () => {
    const desk = await started()
    const condition = { type: 'Ready', status: 'False' } as const
    desk.fields.splice(0)
    desk.set('shop/a', [{ ...EXPIRED, condition }])
    await desk.said(300)
    desk.set('shop/a', [])
    await desk.said(300)
    desk.reporter.event(apiKey('a'), { type: 'Warning', reason: 'NameTakenOver', action: 'Count', note: 'Note.' })
    await desk.said(300)
    const object = { kind: 'ApiKey', namespace: 'shop', name: 'a' }
    expect(desk.fields).toEqual([
      { ...object, change: 'Condition', ...condition, reason: 'Expired', message: 'Why.' },
      { ...object, change: 'Recovery', type: 'Ready', status: 'True', reason: 'Ready', ended: ['Expired'] },
      { ...object, change: 'Event', type: 'Warning', reason: 'NameTakenOver', message: 'Note.' },
    ])
  })

  test('logs nothing after its end', async () => {
    const desk = await started()
    desk.reporter.stop()
    desk.set('shop/a', [EXPIRED])
    expect(await desk.said(60_000)).toEqual([])
    expect(desk.clock.pending).toBe(0)
  })
})
