import { describe, expect, test } from 'vitest'
import type { ObjectReport, Problem } from './object-report.ts'
import { eventLine, linesOf, type ReportChange } from './status-lines.ts'

const problem = (reason: string, change: Partial<Problem> = {}): Problem => ({
  headline: 'not ready',
  reason,
  text: `Why ${reason}.`,
  weight: 'Warning',
  ...change,
})
const report = (name: string, problems: readonly Problem[] = [], isReady = problems.length === 0): ObjectReport => ({
  kind: 'ApiKey',
  name,
  isReady,
  isCurrent: true,
  problems,
})
const change = (before: ObjectReport | undefined, after: ObjectReport | undefined): ReportChange => ({
  kind: 'ApiKey',
  name: (after ?? before)?.name ?? '',
  before,
  after,
})
const lines = (...changes: ReportChange[]): string[] => linesOf(changes).map(({ level, text }) => `${level} ${text}`)
const BAD = report('shop/a', [problem('Expired')])

describe('the lines about objects', () => {
  test('name the object, its state, the reason and the message', () => {
    expect(lines(change(undefined, BAD))).toEqual(['warn ApiKey shop/a: not ready (Expired): Why Expired.'])
    expect(lines(change(undefined, report('shop/a')))).toEqual(['info ApiKey shop/a: ready'])
  })

  test('an intended state is not a warning', () => {
    const suspended = report('shop/a', [problem('Suspended', { weight: 'Wanted' })])
    expect(lines(change(report('shop/a'), suspended))).toEqual(['info ApiKey shop/a: not ready (Suspended): Why Suspended.'])
  })

  test('a lasting problem is not repeated, whatever else changes', () => {
    const worse = report('shop/a', [problem('Expired'), problem('SecretMissing', { headline: 'SecretIssued is False' })])
    expect(lines(change(BAD, BAD))).toEqual([])
    expect(lines(change(BAD, worse))).toEqual(['warn ApiKey shop/a: SecretIssued is False (SecretMissing): Why SecretMissing.'])
    const [one, other] = ['x', 'y'].map((text) => report('shop/a', [problem('NoModel', { text, identity: 'same' })], true))
    expect(lines(change(one, other)), 'the same problem in other words').toEqual([])
  })

  test('the end of a problem is one line: ready, or the ended problem', () => {
    expect(lines(change(BAD, report('shop/a')))).toEqual(['info ApiKey shop/a: ready now (it was Expired)'])
    const both = report('shop/a', [problem('Expired'), problem('SecretMissing')])
    expect(lines(change(both, BAD))).toEqual(['info ApiKey shop/a: no longer SecretMissing'])
    const silent = report('shop/a', [problem('NotAnswering', { over: 'its server answers now' })], true)
    expect(lines(change(silent, report('shop/a')))).toEqual(['info ApiKey shop/a: its server answers now'])
  })

  test('a problem that becomes another one is reported as ended and begun', () => {
    expect(lines(change(BAD, report('shop/a', [problem('Revoked')])))).toEqual([
      'warn ApiKey shop/a: not ready (Revoked): Why Revoked.',
      'info ApiKey shop/a: no longer Expired',
    ])
  })

  test('a deleted ApiKey is a revoked key', () => {
    expect(lines(change(BAD, undefined))).toEqual(['info ApiKey shop/a: deleted: the key is revoked, and its Secret is removed'])
    expect(linesOf([{ kind: 'ServedModel', name: 'shop/m', before: undefined, after: undefined }])).toMatchObject([
      { level: 'info', text: 'ServedModel shop/m: deleted' },
    ])
  })

  test('many objects with the same change share a line', () => {
    const many = Array.from({ length: 500 }, (_, index) => change(undefined, report(`shop/k${index}`, [problem('Expired')])))
    expect(lines(...many)).toEqual(['warn 500 ApiKeys: not ready (Expired) (shop/k0, shop/k1, shop/k2 and 497 more): Why Expired.'])
    expect(lines(...many.slice(0, 3))).toHaveLength(3)
  })

  test('a few with different texts have a line each, and many have one with the first text', () => {
    const each = (count: number): ReportChange[] =>
      Array.from({ length: count }, (_, index) =>
        change(undefined, report(`shop/k${index}`, [problem('Expired', { text: `At ${index}.` })])),
      )
    expect(lines(...each(10))).toHaveLength(10)
    expect(lines(...each(11))).toEqual(['warn 11 ApiKeys: not ready (Expired) (shop/k0, shop/k1, shop/k2 and 8 more); the first: At 0.'])
  })
})

describe('the fields of the lines, for programs', () => {
  const A = { kind: 'ApiKey', namespace: 'shop', name: 'a' }
  const NOT_READY = { type: 'Ready', status: 'False' } as const
  const expired = report('shop/a', [problem('Expired', { condition: NOT_READY })])
  const both = report('shop/a', [problem('Expired', { condition: NOT_READY }), problem('SecretMissing')])
  const silent = report('shop/a', [problem('NotAnswering', { over: 'its server answers now' })], true)
  const ready = report('shop/a')
  const MESSAGE = { reason: 'Expired', message: 'Why Expired.' }

  test.each<[string, ReportChange, object]>([
    ['a condition', change(undefined, expired), { ...A, change: 'Condition', ...NOT_READY, ...MESSAGE }],
    ['a problem without a condition', change(undefined, BAD), { ...A, change: 'Condition', ...MESSAGE }],
    ['an object that is ready', change(undefined, ready), { ...A, change: 'Recovery', type: 'Ready', status: 'True', reason: 'Ready' }],
    [
      'a recovery',
      change(expired, ready),
      { ...A, change: 'Recovery', type: 'Ready', status: 'True', reason: 'Ready', ended: ['Expired'] },
    ],
    ['the end of one problem of two', change(both, expired), { ...A, change: 'Recovery', ended: ['SecretMissing'] }],
    ['the end of a problem with words of its own', change(silent, ready), { ...A, change: 'Recovery', ended: ['NotAnswering'] }],
    ['a deletion', change(expired, undefined), { ...A, change: 'Deleted', message: 'the key is revoked, and its Secret is removed' }],
  ])('%s', (_, one, fields) => {
    expect(linesOf([one]).map((line) => line.fields)).toEqual([fields])
  })

  test('a Warning Event', () => {
    const event = { type: 'Warning', reason: 'NameTakenOver', action: 'Reconcile', note: 'It is taken.' } as const
    expect(eventLine('ApiKey', 'shop/a', event)).toEqual({
      level: 'warn',
      text: 'ApiKey shop/a: NameTakenOver: It is taken.',
      fields: { ...A, change: 'Event', type: 'Warning', reason: 'NameTakenOver', message: 'It is taken.' },
    })
  })

  test('a line about many objects has their number and at most 100 names', () => {
    const many = Array.from({ length: 500 }, (_, index) => change(undefined, report(`shop/k${index}`, [problem('Expired')])))
    const [line] = linesOf(many)
    expect(line?.fields).toMatchObject({ kind: 'ApiKey', count: 500, change: 'Condition', ...MESSAGE })
    expect(line?.fields.objects).toHaveLength(100)
    expect(line?.fields.objects?.slice(0, 2)).toEqual(['shop/k0', 'shop/k1'])
  })
})
