import { expect, test } from 'vitest'
import { BackendHealth } from './backend-health.ts'
import type { LiveProcess } from './store.ts'

function process(pod: string, backends: Record<string, { up: number; total: number }>): LiveProcess {
  return {
    process: `${pod}/1`,
    pod,
    acknowledgement: {
      epoch: 'e1',
      revision: 1,
      source: 'Redis',
      ready: true,
      version: 't',
      schemas: [1],
      features: [],
      unreadable: [],
      backends,
    },
  }
}

test('a model is reported when a gateway reports another health of its backend, and again when the backend is healthy', () => {
  const health = new BackendHealth()
  const down = [process('a', { 'uid-1/main': { up: 0, total: 2 } }), process('b', {})]
  expect([...health.changed(down)]).toEqual(['uid-1'])
  expect([...health.changed(down.toReversed())]).toEqual([])
  expect([...health.changed([process('a', {})])]).toEqual(['uid-1'])
})

test('another order of the heartbeats is not a change', () => {
  const health = new BackendHealth()
  const reports = [process('a', { 'u/x': { up: 0, total: 2 } }), process('b', { 'u/x': { up: 1, total: 2 } })]
  health.changed(reports)
  expect([...health.changed(reports.toReversed())]).toEqual([])
})
