import { expect, test } from 'vitest'
import { heartbeat } from '../../test/support/records.ts'
import { BackendHealth } from './backend-health.ts'

test('a model is reported when a gateway reports another health of its backend, and again when the backend is healthy', () => {
  const health = new BackendHealth()
  const down = [heartbeat('a', { backends: { 'uid-1/main': { up: 0, total: 2 } } }), heartbeat('b')]
  expect([...health.changed(down)]).toEqual(['uid-1'])
  expect([...health.changed(down.toReversed())]).toEqual([])
  expect([...health.changed([heartbeat('a')])]).toEqual(['uid-1'])
})

test('another order of the heartbeats is not a change', () => {
  const health = new BackendHealth()
  const reports = [
    heartbeat('a', { backends: { 'u/x': { up: 0, total: 2 } } }),
    heartbeat('b', { backends: { 'u/x': { up: 1, total: 2 } } }),
  ]
  health.changed(reports)
  expect([...health.changed(reports.toReversed())]).toEqual([])
})
