import { expect, test } from 'vitest'
import { hurriedClock } from '../test/support/hurried-clock.ts'
import { OperatorWorld } from '../test/support/operator-world.ts'
import { apiKeys } from './kube/resources.ts'
import { Sweeper } from './sweeper.ts'

test('a sweep that the API server did not let through is tried again soon, not after the ten minutes until the next one', async () => {
  const world = new OperatorWorld()
  const operator = await world.start()
  await world.apply()
  await operator.settle()
  await world.objects.patch(apiKeys, { namespace: 'shop', name: 'bot' }, [{ op: 'remove', path: '/metadata/finalizers' }])
  await world.objects.remove(apiKeys, { namespace: 'shop', name: 'bot' })
  let asked = 0
  const get: typeof operator.deps.kube.get = (...question) => {
    asked += 1
    return asked === 1 ? Promise.reject(new Error('no answer')) : operator.deps.kube.get(...question)
  }
  const warnings: unknown[] = []
  const log = { warn: (...parts: unknown[]) => void warnings.push(...parts), error: (...parts: unknown[]) => void warnings.push(...parts) }
  const sweeper = new Sweeper({ settings: { watchNamespaces: [] }, clock: hurriedClock, log })
  const stop = new AbortController()
  const running = sweeper.run({ ...operator.deps, kube: { ...operator.deps.kube, get } }, stop.signal)
  sweeper.soon()
  await expect.poll(() => world.records(), { interval: 5, timeout: 5_000 }).toEqual([])
  expect(warnings).toEqual([
    'the sweep of orphaned keys failed (no answer); tried again',
    '1 keys without an ApiKey were revoked: their finalizer had been removed by force',
  ])
  stop.abort()
  await running
  operator.stop()
})
