import { describe, expect, test } from 'vitest'
import type { Confirmation } from './acknowledgements.ts'
import { PendingConfirmations } from './pending-confirmations.ts'
import type { LiveProcess } from './store.ts'

const ref = { namespace: 'shop', name: 'bot' }
const at = (ready: number, total: number): Confirmation => ({ ready, total, missing: [], known: true })

function live(pod: string, backends: Record<string, { up: number; total: number }>): LiveProcess {
  const ack = { epoch: 'e', rev: 1, source: 'Redis', ready: true, version: 't', schemas: [1], bad: [], backends } as const
  return { process: `${pod}/1`, pod, acknowledgement: { ...ack, schemas: [1], bad: [] } }
}

describe('PendingConfirmations', () => {
  test('names a key when its counts differ from what its status says, and only then', () => {
    const pending = new PendingConfirmations()
    pending.set('shop/bot', ref, { rev: 5, uid: 'u', ready: 1, total: 2 })
    expect([...pending.changed(() => at(1, 2))]).toEqual([])
    expect([...pending.changed((rev, uid) => (rev === 5 && uid === 'u' ? at(2, 2) : at(0, 0)))]).toEqual([ref])
    expect([...pending.changed(() => at(1, 3))]).toEqual([ref])
  })

  test('a settled key is never named again: pods that come or go do not rewrite statuses', () => {
    const pending = new PendingConfirmations()
    pending.set('shop/bot', ref, { rev: 5, uid: 'u', ready: 1, total: 2 })
    expect(pending.size).toBe(1)
    pending.set('shop/bot', ref, undefined)
    expect(pending.size).toBe(0)
    expect([...pending.changed(() => at(9, 9))]).toEqual([])
  })

  test('names a model when a gateway sees another health of its backends, and when it sees them well again', () => {
    const pending = new PendingConfirmations()
    expect([...pending.changedHealth([live('a', {})])]).toEqual([])
    expect([...pending.changedHealth([live('a', { 'model-1/one': { up: 0, total: 2 } })])]).toEqual(['model-1'])
    expect([...pending.changedHealth([live('a', { 'model-1/one': { up: 0, total: 2 } })])]).toEqual([])
    expect([...pending.changedHealth([live('a', { 'model-1/one': { up: 1, total: 2 } })])]).toEqual(['model-1'])
    expect([...pending.changedHealth([live('a', {})])]).toEqual(['model-1'])
  })

  test('the order in which the heartbeats of two gateways come changes nothing', () => {
    const pending = new PendingConfirmations()
    const [a, b] = [live('a', { 'm/one': { up: 0, total: 2 } }), live('b', { 'm/one': { up: 1, total: 2 } })]
    expect([...pending.changedHealth([a, b])]).toEqual(['m'])
    expect([...pending.changedHealth([b, a])]).toEqual([])
  })
})
