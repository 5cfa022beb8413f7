import { describe, expect, test } from 'vitest'
import { ManualClock } from '../test/support/manual-clock.ts'
import { apiKey, servedModel } from '../test/support/objects.ts'
import { apiKeys, servedModels } from '#api/resources.ts'
import type { Condition } from '#api/metadata.ts'
import { events, type KubeEvent } from '#kube/resources.ts'
import { ObjectStore } from './object-store.ts'
import { StatusConsole } from './status-console.ts'

const condition = (type: string, reason: string): Condition => {
  const status = reason === 'Ready' || reason === 'Issued' ? 'True' : 'False'
  return { type, status, reason, message: `Why ${reason}.`, lastTransitionTime: '2026-01-01T00:00:00Z' }
}

/** A console over a store that a test changes as the operator does. */
class Desk {
  readonly clock = new ManualClock()
  readonly store = new ObjectStore()
  readonly lines: string[] = []
  readonly fields: unknown[] = []
  isBusy = false
  readonly console: StatusConsole

  constructor() {
    const say = (level: string) => (fields: unknown, text?: string) => {
      this.lines.push(`${level} ${text ?? ''}`)
      this.fields.push(fields)
    }
    this.console = new StatusConsole({
      store: this.store,
      clock: this.clock,
      log: { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') },
      print: (text) => void this.lines.push(...(text.match(/^.*is ready:$|^\d+ more.*$/gm) ?? [])),
      baseURL: 'http://u',
      manifests: 'm',
      note: () => '',
      secretFile: () => 'file',
      isBusy: () => this.isBusy,
      failureAt: async () => undefined,
    })
  }

  /** Gives a key a status with this reason of Ready. */
  async set(name: string, reason = 'Ready'): Promise<void> {
    const ref = { namespace: 'shop', name }
    const key = (await this.store.get(apiKeys, ref)) ?? (await this.store.create(apiKeys, apiKey(name, { models: ['llama'] })))
    const conditions = [condition('Ready', reason), condition('SecretIssued', 'Issued')]
    await this.store.applyStatus(apiKeys, { ...key, metadata: { ...ref }, status: { observedGeneration: 1, conditions } })
  }

  async warn(reason: string): Promise<void> {
    const regarding = { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', namespace: 'shop', name: 'a', uid: '' }
    const event = { apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { namespace: 'shop', name: `e${Math.random()}` }, regarding }
    const text = { reason, type: 'Warning', note: `Note of ${reason}.`, action: 'Count', eventTime: '' } as const
    await this.store.create<KubeEvent>(events, { ...event, ...text, reportingController: '', reportingInstance: '' })
  }

  /** Lines since the last call. */
  async said(ms = 300): Promise<string[]> {
    await this.clock.advance(ms)
    return this.lines.splice(0)
  }
}

/** One working key that has been reported, and a model. */
async function started(): Promise<Desk> {
  const desk = new Desk()
  const model = await desk.store.create(servedModels, servedModel('llama'))
  const conditions = [condition('Ready', 'Ready')]
  await desk.store.applyStatus(servedModels, { ...model, status: { observedGeneration: 1, conditions } } as typeof model)
  await desk.set('a')
  desk.console.start()
  expect((await desk.said()).toSorted()).toEqual([
    'ApiKey shop/a is ready:',
    'info ApiKey shop/a: ready',
    'info ServedModel shop/llama: ready',
  ])
  desk.fields.splice(0)
  return desk
}

describe('the console', () => {
  test('reports a change and its end in one line each, with fields for programs, and prints the command of a key once', async () => {
    const desk = await started()
    await desk.set('a', 'Expired')
    expect(await desk.said()).toEqual(['warn ApiKey shop/a: not ready (Expired): Why Expired.'])
    await desk.set('a')
    expect(await desk.said()).toEqual(['info ApiKey shop/a: ready now (it was Expired)'])
    const object = { kind: 'ApiKey', namespace: 'shop', name: 'a' }
    expect(desk.fields).toEqual([
      { ...object, change: 'Condition', type: 'Ready', status: 'False', reason: 'Expired', message: 'Why Expired.' },
      { ...object, change: 'Recovery', type: 'Ready', status: 'True', reason: 'Ready', ended: ['Expired'] },
    ])
    await desk.set('b')
    expect(await desk.said()).toEqual(['info ApiKey shop/b: ready', 'ApiKey shop/b is ready:'])
    for (let index = 0; index < 4; index += 1) await desk.set(`k${index}`)
    expect(await desk.said(), 'more than three').toEqual(['info 4 ApiKeys: ready (shop/k0, shop/k1, shop/k2 and 1 more)'])
  })

  test('does not report a state of a moment, and reports a lasting state once', async () => {
    const desk = await started()
    for (let round = 0; round < 20; round++) {
      await desk.set('a', 'Expired')
      expect(await desk.said(50)).toEqual([])
      await desk.set('a')
      expect(await desk.said(50)).toEqual([])
    }
    await desk.set('a', 'Expired')
    expect(await desk.said(60_000)).toHaveLength(1)
  })

  test('gives running work five seconds to end', async () => {
    const desk = await started()
    await desk.set('a', 'NotProgrammed')
    expect(await desk.said(4_900)).toEqual([])
    expect(await desk.said()).toEqual([expect.stringMatching(/^warn ApiKey shop\/a: not ready \(NotProgrammed\)/)])
  })

  test('waits at most five seconds for the operator, so that many changes share one line', async () => {
    const desk = await started()
    desk.isBusy = true
    for (let index = 0; index < 20; index += 1) {
      await desk.set(`k${index}`, 'Expired')
      expect(await desk.said(100)).toEqual([])
    }
    desk.isBusy = false
    expect(await desk.said()).toEqual(['warn 20 ApiKeys: not ready (Expired) (shop/k0, shop/k1, shop/k2 and 17 more): Why Expired.'])
    desk.isBusy = true
    for (let index = 0; index < 20; index += 1) {
      await desk.set(`k${index}`)
      await desk.clock.advance(200)
    }
    expect(await desk.said(20_000), 'of a long work, the lines of five seconds come together').toHaveLength(1)
  })

  test('reports a revoked key when its object is deleted, not when the deletion begins', async () => {
    const desk = await started()
    const ref = { namespace: 'shop', name: 'a' }
    await desk.store.patch(apiKeys, ref, [{ op: 'add', path: '/metadata/finalizers', value: ['headgate.dev/revoke'] }])
    await desk.store.remove(apiKeys, ref)
    expect(await desk.said(10_000)).toEqual([])
    await desk.store.patch(apiKeys, ref, [{ op: 'remove', path: '/metadata/finalizers' }])
    expect(await desk.said()).toEqual(['info ApiKey shop/a: deleted: the key is revoked, and its Secret is removed'])
  })

  test('reports a Warning Event, unless a condition has the same content', async () => {
    const desk = await started()
    await desk.warn('BudgetNearlyUsed')
    expect(await desk.said()).toEqual([
      'warn ApiKey shop/a: BudgetNearlyUsed: Note of BudgetNearlyUsed. Raise the amount of the budget, or wait for its next window.',
    ])
    await desk.set('a', 'Expired')
    await desk.clock.advance(1_000)
    await desk.warn('Expired')
    expect(await desk.said()).toHaveLength(1)
  })

  test('logs nothing after its end', async () => {
    const desk = await started()
    desk.console.stop()
    await desk.set('a', 'Expired')
    expect(await desk.said(60_000)).toEqual([])
    expect(desk.clock.pending).toBe(0)
  })
})
