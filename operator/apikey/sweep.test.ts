import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type OperatorProcess, OperatorWorld } from '../../test/support/operator-world.ts'
import { GatewayTable } from '../../test/support/gateway-table.ts'
import { heldKey, verifierOf } from '../../test/support/observed-key.ts'
import type { ApiKey } from '../api/apikey.ts'
import type { Informer } from '../kube/port.ts'
import { apiKeys } from '../kube/resources.ts'
import { lineOf } from './policy.ts'
import { planSweep, sweep } from './sweep.ts'

const DAY = 24 * 3600 * 1000
const NOW = Date.UTC(2026, 0, 5)
const everywhere = (): boolean => true

const line = (uid: string, change: Partial<ReturnType<typeof lineOf>> = {}) => ({
  ...lineOf(heldKey({}, { uid, name: uid }), [verifierOf(1)], 1),
  ...change,
})
const lines = (count: number, prefix: string) => Array.from({ length: count }, (_, index) => line(`${prefix}-${index}`))

/** A cache that holds ApiKeys of these uids, each named like its uid. */
function cacheOf(uids: readonly string[]): Informer<ApiKey> {
  const known = new Map(uids.map((uid) => [uid, heldKey({}, { uid, name: uid })]))
  return { synced: Promise.resolve(), get: ({ name }) => known.get(name), list: () => known.values(), subscribe: () => undefined }
}

describe('planSweep', () => {
  test('an issued key whose ApiKey is gone is an orphan, and so is one whose ApiKey was made anew', () => {
    const anew = line('old-uid', { name: 'a' })
    const plan = planSweep([line('a'), line('gone'), anew], cacheOf(['a']), everywhere, NOW)
    expect(plan.orphans.map(({ uid }) => uid)).toEqual(['gone', 'old-uid'])
    expect(plan.refused).toBe(false)
  })

  test('a namespace that is not watched is left alone: the cache knows nothing of it', () => {
    expect(planSweep([line('gone')], cacheOf([]), (namespace) => namespace !== 'shop', NOW).orphans).toEqual([])
  })

  test('a deleted key is no orphan, and its line goes after a day', () => {
    const [fresh, old] = [line('fresh', { deleted: NOW - DAY + 1 }), line('old', { deleted: NOW - DAY - 1 })]
    const plan = planSweep([fresh, old], cacheOf([]), everywhere, NOW)
    expect(plan).toEqual({ orphans: [], refused: false, old: [old] })
  })

  test.each<[number, number, boolean]>([
    [10, 0, false], // ten may well have gone
    [11, 0, true], // an empty list
    [11, 44, false], // exactly a fifth
    [11, 43, true],
    [500, 10_000, false],
  ])('%i orphans beside %i known keys: refused is %s', (orphans, known, isRefused) => {
    const present = lines(known, 'known')
    const cache = cacheOf(present.map(({ uid }) => uid))
    expect(planSweep([...present, ...lines(orphans, 'gone')], cache, everywhere, NOW).refused).toBe(isRefused)
  })

  test('deleted keys do not make the share look smaller', () => {
    const deleted = lines(1000, 'deleted').map((one) => ({ ...one, deleted: NOW }))
    expect(planSweep([...deleted, ...lines(11, 'gone')], cacheOf([]), everywhere, NOW).refused).toBe(true)
  })
})

describe('sweep', () => {
  let world: OperatorWorld
  let operator: OperatorProcess

  beforeEach(async () => {
    world = new OperatorWorld()
    operator = await world.start()
  })
  afterEach(() => operator.stop())

  const refused: number[] = []
  const run = (): Promise<number> => sweep(operator.deps, everywhere, (count) => refused.push(count))
  async function issue(name: string): Promise<void> {
    await world.apply({}, name)
    await operator.settle({ namespace: 'shop', name })
  }
  /** As `kubectl patch` of the finalizers on an object that is being deleted. */
  async function removeByForce(name: string): Promise<void> {
    const key = await world.key(name)
    await world.objects.remove(apiKeys, { namespace: 'shop', name })
    await world.objects.patch(apiKeys, { namespace: 'shop', name }, [{ op: 'remove', path: '/metadata/finalizers' }])
    expect(key.metadata.finalizers).toHaveLength(1)
  }

  test('a key whose finalizer was removed by force is revoked: in the keyring and on the gateways', async () => {
    await issue('bot')
    await issue('other')
    await removeByForce('bot')
    expect((await world.records()).map(({ name }) => name).sort()).toEqual(['bot', 'other'])
    expect(await run()).toBe(1)
    expect((await world.records()).map(({ name }) => name)).toEqual(['other'])
    const tombstone = [...operator.deps.keyring.lines()].find(({ name }) => name === 'bot')
    expect(tombstone).toMatchObject({ st: 'Revoked', deleted: world.now, ver: [{ state: 'Revoked' }] })
    expect(await run()).toBe(0)
  })

  test('a key that the cache alone does not know is asked for, and lives', async () => {
    await issue('bot')
    const blind = { ...operator.deps, apiKeys: cacheOf([]) }
    expect(await sweep(blind, everywhere, () => undefined)).toBe(0)
    expect(await world.records()).toHaveLength(1)
  })

  test('while the store is down the keyring is told, and the gateways when it is back', async () => {
    await issue('bot')
    await issue('other')
    await removeByForce('bot')
    await removeByForce('other')
    world.storeDown = true
    expect(await run()).toBe(2)
    world.storeDown = false
    await expect.poll(() => world.records(), { interval: 5 }).toEqual([])
  })

  test.each(['goes on', 'is restarted'])(
    'a key resumed and removed by force while the store is down never works again: the operator %s',
    async (fate) => {
      await world.apply({ state: 'Suspended' })
      await operator.settle()
      const table = new GatewayTable(world)
      const value = await world.value()
      world.storeDown = true
      await world.apply({ state: 'Active' })
      await operator.settle().catch(() => undefined)
      await removeByForce('bot')
      await operator.settle()
      if (fate === 'is restarted') {
        operator.stop()
        operator = await world.start()
      }
      world.storeDown = false
      await expect.poll(() => world.records(), { interval: 5 }).toEqual([])
      await table.follow()
      expect(table.authenticates(value)).toBe(false)
    },
  )

  test('the line of a deleted key goes after a day', async () => {
    await issue('bot')
    await world.objects.remove(apiKeys, { namespace: 'shop', name: 'bot' })
    await operator.settle()
    await run()
    expect([...operator.deps.keyring.lines()]).toHaveLength(1)
    world.now += DAY + 1
    await run()
    expect([...operator.deps.keyring.lines()]).toEqual([])
  })

  test('too many at once are reported, and none is touched', async () => {
    const names = Array.from({ length: 11 }, (_, index) => `bot-${index}`)
    await Promise.all(names.map(issue))
    for (const name of names) await removeByForce(name)
    expect(await run()).toBe(0)
    expect(refused).toEqual([11])
    expect(await world.records()).toHaveLength(11)
  })
})
