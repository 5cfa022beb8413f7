/** Hundreds of ServedModels of one name: what the operator does for them, counted, and what it still does for a key of another namespace. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { servedModel, SHOP } from '../../../test/support/objects.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { apiKeys, servedModels } from '#api/resources.ts'
import type { Kind } from '../kind.ts'
import { apiKeyRow } from '../apikey/kind.ts'
import { servedModelRow } from './kind.ts'

const MODELS = 240
const ALIASES = Array.from({ length: 16 }, (_, at) => `alias-${at}`)
const BACKENDS = [{ name: 'one', url: 'https://models.example' }]

let world: OperatorWorld
let looks: number
let statuses: number
let mostStatuses: number

beforeEach(async () => {
  looks = statuses = mostStatuses = 0
  world = new OperatorWorld([apiKeyRow, { ...servedModelRow, create: (context) => counted(servedModelRow.create(context)) }])
  await world.start({ maxServedModelsPerNamespace: 10_000 })
  world.beforeCall = async ({ verb, plural }) => {
    if (verb !== 'applyStatus' || plural !== 'servedmodels') return
    mostStatuses = Math.max(mostStatuses, (statuses += 1))
    await world.sleep(20)
    statuses -= 1
  }
})
afterEach(() => world.stop())

function counted(kind: Kind): Kind {
  const observe = kind.observe.bind(kind)
  return Object.assign(kind, { observe: (ref: Parameters<typeof observe>[0]) => ((looks += 1), observe(ref)) })
}

async function makeModels(namespaceOf: (at: number) => string = () => 'heavy'): Promise<void> {
  for (let at = 0; at < MODELS; at += 8) {
    const some = Array.from({ length: 8 }, (_, one) => at + one)
    const manifest = (one: number) =>
      servedModel(`same-${one}`, { servedName: 'shared', aliases: ALIASES, backends: BACKENDS }, { namespace: namespaceOf(one) })
    await Promise.all(some.map((one) => world.apply(servedModels, manifest(one))))
    await world.pass(0.01)
  }
}

const reported = async (): Promise<number> =>
  (await world.objects.list(servedModels, 'heavy')).filter(({ status }) => status?.conditions !== undefined).length

test('one of their statuses is written at a time, and a new key of another namespace waits for none', async () => {
  await makeModels()
  await world.applyKey()
  for (let turn = 0; turn < 100 && (await world.condition(apiKeys, 'bot', 'Ready')) !== 'True Ready'; turn += 1) await world.pass(0.01)
  expect(await world.condition(apiKeys, 'bot', 'Ready')).toBe('True Ready')
  expect(await reported()).toBeLessThan(MODELS)
  expect((await world.key('bot', SHOP)).status?.conditions).toBeDefined()
  await world.settle()
  expect([await reported(), mostStatuses]).toEqual([MODELS, 1])
})

test('over many namespaces three of their statuses are written at a time', async () => {
  await makeModels((at) => `heavy-${at % 12}`)
  await world.settle()
  expect(mostStatuses).toBe(3)
})

describe('beside five namespaces whose admission webhook takes 10 s for each status', () => {
  const SLOW = ['slow-0', 'slow-1', 'slow-2', 'slow-3', 'slow-4']
  beforeEach(async () => {
    world.beforeCall = async ({ verb, plural, namespace }) => {
      if (verb !== 'applyStatus' || plural !== 'servedmodels') return
      if (!SLOW.includes(namespace)) return await world.sleep(20)
      mostStatuses = Math.max(mostStatuses, (statuses += 1))
      await world.sleep(10_000)
      statuses -= 1
    }
    for (const namespace of SLOW)
      for (let at = 0; at < 40; at += 1)
        await world.apply(servedModels, servedModel(`slow-${at}`, { servedName: `slow-${at}`, backends: BACKENDS }, { namespace }))
  })

  /** @returns ms until a new model of another namespace has its status */
  async function waitOf(name: string): Promise<number> {
    const ref = { namespace: SHOP, name }
    const startedMs = world.clock.monotonic()
    await world.apply(servedModels, servedModel(name, { servedName: name, backends: BACKENDS }, { namespace: SHOP }))
    const isReported = async (): Promise<boolean> => (await world.objects.get(servedModels, ref))?.status?.conditions !== undefined
    while (!(await isReported()) && world.clock.monotonic() < startedMs + 60_000) await world.pass(0.1)
    return world.clock.monotonic() - startedMs
  }

  test('the statuses of others take hardly longer, from the first of the slow ones on', async () => {
    const waits: number[] = []
    for (let at = 0; at < 20; at += 1) {
      waits.push(await waitOf(`quick-${at}`))
      await world.pass(1)
    }
    expect(Math.max(...waits)).toBeLessThan(2_000)
  })

  test('theirs go on, one at a time, and at the usual pace once the webhook answers in time', async () => {
    await world.during(world.sleep(120_000))
    mostStatuses = 0
    await world.during(world.sleep(60_000))
    expect(mostStatuses).toBe(1)
    world.beforeCall = () => undefined
    await world.during(world.sleep(60_000))
    const reports = await Promise.all(SLOW.map((namespace) => world.objects.list(servedModels, namespace)))
    expect(reports.flat().filter(({ status }) => status?.conditions === undefined)).toEqual([])
  })
})

test('each is looked at a few times, and not at all once it stands', async () => {
  await makeModels()
  await world.settle()
  expect(looks / MODELS).toBeLessThan(6.5)
  looks = 0
  await world.during(world.sleep(60_000))
  expect(looks / MODELS).toBeLessThan(0.2) // resync alone
})
