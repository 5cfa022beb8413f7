import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MemoryProjection } from '../../../standalone/memory-projection.ts'
import { sha256 } from '../../../test/support/hash-keys.ts'
import { SHOP } from '../../../test/support/objects.ts'
import type { KillAt } from '../../../test/support/operator-process.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { findCondition } from '#api/condition-list.ts'
import { apiKeys } from '#api/resources.ts'
import { secrets } from '#kube/resources.ts'
import { hashSource } from './hash-source.ts'
import { apiKeyRow } from './kind.ts'

/** `SEED=… make property` repeats a run; `PROPERTY_MS=…` makes it longer. */
const SEED = Number(process.env.SEED ?? randomInt(2 ** 31))
const BUDGET_MS = Number(process.env.PROPERTY_MS ?? 10_000)

type Happening =
  | {
      readonly on: 'apply'
      readonly name: string
      readonly value: number
      readonly overlapSeconds: number
      readonly state: 'Active' | 'Suspended'
    }
  | { readonly on: 'delete'; readonly name: string }
  | { readonly on: 'kill'; readonly kill: KillAt }
  | { readonly on: 'time passes'; readonly seconds: number }
  | {
      readonly on:
        'restart' | 'settle' | 'late calls arrive' | 'store down' | 'store up' | 'store wiped' | 'keyring lost' | 'events doubled'
    }

const name = fc.constantFrom('a', 'b', 'c')
const happening: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      on: fc.constant('apply'),
      name,
      value: fc.integer({ min: 0, max: 3 }),
      overlapSeconds: fc.constantFrom(0, 30, 3_600),
      state: fc.constantFrom('Active', 'Active', 'Active', 'Suspended'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ on: fc.constant('delete'), name }) },
  {
    weight: 4,
    arbitrary: fc.record({
      on: fc.constant('kill'),
      kill: fc.record({ write: fc.nat({ max: 6 }), when: fc.constantFrom('before', 'after', 'late') }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ on: fc.constant('time passes'), seconds: fc.constantFrom(5, 61, 3_700) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      on: fc.constantFrom(
        'restart',
        'settle',
        'late calls arrive',
        'store down',
        'store up',
        'store wiped',
        'keyring lost',
        'events doubled',
      ),
    }),
  },
)

type Of<On extends Happening['on']> = Extract<Happening, { readonly on: On }>
type Happenings = { readonly [On in Happening['on']]: (world: OperatorWorld, one: Of<On>) => unknown }

const HAPPENINGS: Happenings = {
  async apply(world, { name: of, value, overlapSeconds, state }) {
    const source = { type: 'Hash', hash: { sha256: sha256(`sk-${value}`) } } as const
    await world.applyKey({ state, source, rotation: { overlapSeconds } }, of)
    await world.drained()
  },
  delete: (world, { name: of }) => world.objects.remove(apiKeys, { namespace: SHOP, name: of }).catch(() => undefined),
  kill: (world, { kill }) => world.start({}, kill).then(() => world.start()),
  'time passes': (world, { seconds }) => world.pass(seconds),
  restart: (world) => world.restart(),
  settle: (world) => world.settle(),
  'late calls arrive': (world) => world.landLate(),
  'store down': (world) => (world.storeDown = true),
  'store up': (world) => (world.storeDown = false),
  'store wiped': (world) => (world.memory = new MemoryProjection({ now: () => world.now })),
  'keyring lost': loseKeyring,
  'events doubled': (world) => (world.watches.isDoubled = true),
}

async function happen<On extends Happening['on']>(world: OperatorWorld, one: Of<On>): Promise<void> {
  const carryOut = HAPPENINGS[one.on as On]
  await carryOut(world, one)
}

async function loseKeyring(world: OperatorWorld): Promise<void> {
  for (const { metadata } of await world.shards('keyring'))
    await world.objects.remove(secrets, { namespace: metadata.namespace ?? '', name: metadata.name })
}

/** Invariants of a settled world. */
async function expectOrder(world: OperatorWorld): Promise<void> {
  const records = await world.keyRecords()
  const held = records.flatMap(({ verifiers }) => verifiers.map(({ hash }) => hash))
  expect(new Set(held).size, 'a value belongs to one key').toBe(held.length)
  const keys = await world.objects.list(apiKeys, SHOP)
  expect(records.map((one) => one.name).toSorted(), 'no record without an ApiKey').toEqual(
    keys
      .filter(({ metadata }) => records.some(({ uid }) => uid === metadata.uid))
      .map(({ metadata }) => metadata.name)
      .toSorted(),
  )
  for (const key of keys) {
    const accepted = findCondition(key.status?.conditions, 'Accepted')?.reason
    const { hash } = hashSource(key)!
    const record = records.find(({ uid }) => uid === key.metadata.uid)
    expect(['Accepted', 'DuplicateKey']).toContain(accepted)
    const holder = records.find(({ verifiers }) => verifiers.some((one) => one.hash === hash))
    expect(holder?.uid === key.metadata.uid, `${key.metadata.name} is ${accepted}`).toBe(accepted === 'Accepted')
    expect(holder, 'a value that a manifest names works').toBeDefined()
    if (accepted === 'Accepted')
      expect([record?.state, key.status?.keyID]).toEqual([key.spec.state, record?.verifiers.find((one) => one.hash === hash)?.id])
  }
  expect(await world.objects.list(secrets, SHOP), 'no key has a Secret').toEqual([])
  expect(JSON.stringify([keys.map(({ status }) => status), world.events, world.logs])).not.toMatch(/sk-[0-3]\b/)
}

test(
  `after any events, each value belongs to one key with a hash, and each such key has its value or a reason (SEED=${SEED})`,
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { minLength: 3, maxLength: 14 }), async (happenings) => {
        const world = new OperatorWorld([apiKeyRow])
        try {
          await world.start()
          for (const one of happenings) await happen(world, one)
          world.storeDown = false
          await world.landLate()
          await world.restart() // deposed leaders have ended by now
          await world.pass(7_300) // beyond every overlap, retry and resync
          await world.settle()
          await world.pass(700)
          await world.settle()
          await expectOrder(world)
          world.writes.length = 0
          await world.restart()
          expect(world.writes, 'a second pass writes nothing').toEqual([])
        } finally {
          await world.stop()
        }
      }),
      { seed: SEED, interruptAfterTimeLimit: BUDGET_MS, markInterruptAsFailure: false, numRuns: 100_000, endOnFailure: false },
    )
  },
  BUDGET_MS + 60_000,
)
