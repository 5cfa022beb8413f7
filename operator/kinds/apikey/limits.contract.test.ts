import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { servedModel, SHOP } from '../../../test/support/objects.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import type { ApiKeySpec } from '#api/apikey.ts'
import { apiKeys, servedModels } from '#api/resources.ts'
import type { SubjectUsage } from '../../books/subject-ledger.ts'

type Budget = NonNullable<ApiKeySpec['budgets']>[number]
type ModelSpec = NonNullable<Parameters<typeof servedModel>[1]>

const MONTH: Budget = { name: 'month', amount: '25', unit: 'Currency', window: 'Month', timeZone: 'Europe/Berlin', onExceeded: 'Block' }
const PRICED: ModelSpec = { pricing: { inputPerMillion: '1', outputPerMillion: '2' }, maxOutputTokens: 4096 }

let world: OperatorWorld

beforeEach(() => {
  world = new OperatorWorld()
})
afterEach(() => world.stop())

const enforceable = (name = 'bot') => world.condition(apiKeys, name, 'LimitsEnforceable')
const keyText = async (): Promise<string> => (await world.texts('key')).join('\n')

async function applyModel(spec: ModelSpec, name = 'llama', namespace = SHOP): Promise<void> {
  const backends = [{ name: 'one', url: 'http://models.example' }]
  await world.apply(servedModels, servedModel(name, { backends, ...spec }, { namespace }))
  await world.settle()
}

/** Status writes of ApiKeys from now on. */
function statusWrites(): () => number {
  const before = world.writes.length
  return () => world.writes.slice(before).filter((write) => write.includes(' apikeys ')).length
}

describe('limits of a key', () => {
  test('reach the gateways as integers, and follow edits', async () => {
    await world.issuedKey({ limits: { requestsPerMinute: 60 }, budgets: [MONTH] })
    expect((await world.keyRecords())[0]).toMatchObject({
      limits: { requestsPerMinute: 60 },
      budgets: [{ name: 'month', amount: 25_000_000 }],
    })
    expect((await world.keyringEntries())[0], 'durable too').toMatchObject({ budgets: [{ amount: 25_000_000 }] })
    await world.settledKey({ limits: { requestsPerMinute: 5 } })
    const [record] = await world.keyRecords()
    expect(record).toMatchObject({ limits: { requestsPerMinute: 5 } })
    expect(record?.budgets).toBeUndefined()
    expect(await enforceable()).toBe('True Enforceable')
  })

  test('survive a lost Redis and a lost keyring; a restart then writes nothing', async () => {
    await world.issuedKey({ limits: { requestsPerMinute: 60 }, budgets: [MONTH], onStoreUnavailable: 'LocalShare' })
    const text = (await keyText()).replace(/"rev":\d+/, '')
    const written = world.writes.length
    await world.restart()
    expect(world.writes.slice(written)).toEqual([])
    expect((await keyText()).replace(/"rev":\d+/, '')).toBe(text)
  })

  test('need the feature of a gateway, and a suspension needs none', async () => {
    await world.issuedKey({ limits: { requestsPerMinute: 60 } })
    expect(await keyText()).toContain('"needs":["limits"]')
    await world.settledKey({ limits: { requestsPerMinute: 60 }, state: 'Suspended' })
    expect(await keyText()).toContain('"state":"Suspended"')
    expect(await keyText()).not.toContain('needs')
    await world.settledKey({ limits: { requestsPerMinute: 60 }, state: 'Active' })
    expect(await keyText()).toContain('"needs":["limits"]')
  })
})

describe('a budget in a time zone that does not exist', () => {
  const typo: Budget = { ...MONTH, amount: '99', timeZone: 'Europe/Atlantis' }

  test('issues no key, and the condition names the field and the remedy', async () => {
    await world.issuedKey({ budgets: [typo] })
    expect(await world.condition(apiKeys, 'bot', 'Accepted')).toBe('False InvalidTimeZone')
    expect(await world.condition(apiKeys, 'bot', 'Ready')).toBe('False NotAccepted')
    expect(await world.message(apiKeys, 'bot', 'Accepted')).toMatch(/spec\.budgets\[month\]\.timeZone is Europe\/Atlantis.*Europe\/Berlin/)
    expect([await world.value(), await world.keyRecords()]).toEqual(['', []])
    const messages = ['Ready', 'SecretIssued', 'Programmed'].map((type) => world.message(apiKeys, 'bot', type))
    expect(new Set(await Promise.all(messages))).toEqual(new Set([await world.message(apiKeys, 'bot', 'Accepted')]))
    await world.settledKey({ budgets: [MONTH] })
    expect(await world.condition(apiKeys, 'bot', 'Ready')).toBe('True Ready')
  })

  test('leaves the budgets of a working key unchanged, and delays no other part of the edit', async () => {
    await world.issuedKey({ budgets: [MONTH] })
    await world.settledKey({ budgets: [typo], models: ['llama'], state: 'Suspended' })
    expect((await world.keyRecords())[0]).toMatchObject({ state: 'Suspended', models: [['llama']], budgets: [{ amount: 25_000_000 }] })
    expect(await world.condition(apiKeys, 'bot', 'Accepted')).toBe('False InvalidTimeZone')
  })
})

describe('a reading of the ledger about a key', () => {
  const spent = (micros: number): SubjectUsage => ({
    budgets: [{ budget: 'month', unit: 'Currency', window: 'Month', spent: micros, windowStartMs: Date.UTC(2026, 0, 1) }],
    lastUsedMs: Date.UTC(2026, 0, 1, 9, 30),
  })
  const budgetEvents = () => world.events.map(({ reason }) => reason).filter((reason) => reason.startsWith('Budget'))

  test('makes the key not Ready as soon as a budget is used up, and Ready when the amount is raised, with two Events in all', async () => {
    await world.issuedKey({ budgets: [MONTH] })
    await world.readUsage(spent(20_000_000))
    await world.settle()
    await world.readUsage(spent(25_000_000))
    await world.drained()
    expect(await world.condition(apiKeys, 'bot', 'Ready'), 'a minute has not passed').toBe('False BudgetExhausted')
    await world.settledKey({ budgets: [{ ...MONTH, amount: '100' }] })
    expect(await world.condition(apiKeys, 'bot', 'Ready')).toBe('True Ready')
    await world.readUsage(spent(90_000_000))
    await world.pass(61)
    await world.settle()
    expect((await world.key()).status).toMatchObject({ usage: [{ percent: 90 }] })
    expect(budgetEvents()).toEqual(['BudgetNearlyUsed', 'BudgetExhausted'])
  })

  test('belongs to the ApiKey: another ApiKey with the same name shows no use', async () => {
    await world.issuedKey({ budgets: [MONTH] })
    await world.readUsage(spent(5_000_000))
    await world.settle()
    await world.objects.remove(apiKeys, { namespace: SHOP, name: 'bot' })
    await world.settle()
    await world.settledKey({ budgets: [MONTH] })
    expect((await world.key()).status?.usage).toBeUndefined()
  })
})

describe('LimitsEnforceable', () => {
  test('names a model without a price, and changes when the model gets a price, loses it and is deleted', async () => {
    await world.start()
    await applyModel({ maxOutputTokens: 4096 })
    await world.settledKey({ budgets: [MONTH] })
    expect(await enforceable()).toBe('False PriceMissing')
    expect(await world.message(apiKeys, 'bot', 'LimitsEnforceable')).toContain('llama')
    await applyModel(PRICED)
    expect(await enforceable()).toBe('True Enforceable')
    await applyModel({ ...PRICED, pricing: undefined })
    expect(await enforceable()).toBe('False PriceMissing')
    await world.objects.remove(servedModels, { namespace: SHOP, name: 'llama' })
    await world.settle()
    expect(await enforceable()).toBe('True Enforceable')
  })

  test('a key is not Ready while no model that it may call has a price, and works again as soon as one has', async () => {
    await world.start()
    await applyModel({ maxOutputTokens: 4096 })
    const value = await world.settledKey({ budgets: [MONTH] })
    expect(await world.condition(apiKeys, 'bot', 'Ready')).toBe('False PriceMissing')
    expect(await world.message(apiKeys, 'bot', 'Ready')).toMatch(/\(llama\) answers 402.*Set pricing in the ServedModel/)
    await applyModel(PRICED, 'other')
    expect(await world.condition(apiKeys, 'bot', 'Ready')).toBe('True Ready')
    await world.settledKey({ budgets: [MONTH], models: ['llama'] })
    expect(await world.condition(apiKeys, 'bot', 'Ready')).toBe('False PriceMissing')
    await applyModel(PRICED)
    expect([await world.condition(apiKeys, 'bot', 'Ready'), await world.value()]).toEqual(['True Ready', value])
  })

  test.each<[string, Partial<ApiKeySpec>]>([
    ['tokens', { budgets: [{ ...MONTH, unit: 'Tokens' }] }],
    ['money that only audits', { budgets: [{ ...MONTH, onExceeded: 'Audit' }] }],
    ['money, and may not call the model', { budgets: [MONTH], models: ['qwen'] }],
    ['nothing', { limits: { requestsPerMinute: 1 } }],
  ])('needs no price for a budget of %s', async (_, spec) => {
    await world.start()
    await applyModel({ maxOutputTokens: 4096 })
    await world.settledKey(spec)
    expect(await enforceable()).toBe('True Enforceable')
  })

  test('reports a rollback of the gateways on every key with limits at once, and its end after a minute', async () => {
    await world.issuedKey({ limits: { requestsPerMinute: 1 } })
    await world.settledKey({}, 'free')
    world.reports = { features: [] }
    await world.pass(2)
    await world.settle()
    expect([await enforceable(), await enforceable('free')]).toEqual(['False GatewayTooOld', 'True Enforceable'])
    await world.restart()
    expect(await enforceable()).toBe('False GatewayTooOld')
    world.reports = {}
    await world.pass(61)
    await world.settle()
    expect(await enforceable()).toBe('True Enforceable')
  })

  test('a limit that an old pod cannot read is not shown as programmed', async () => {
    await world.issuedKey({})
    const uid = (await world.key()).metadata.uid ?? ''
    world.reports = { features: [], unreadable: [uid] }
    await world.settledKey({ limits: { requestsPerMinute: 1 } })
    expect(await world.condition(apiKeys, 'bot', 'Programmed')).toBe('False Unconfirmed')
    expect(await world.message(apiKeys, 'bot', 'Programmed')).toContain('gateway-0')
    expect(await enforceable()).toBe('False GatewayTooOld')
  })

  test('of hundreds of keys changes with one price by one write each, and a change without effect writes nothing', async () => {
    const KEYS = 200
    await world.start()
    await applyModel(PRICED)
    await applyModel(PRICED, 'always')
    for (let count = 0; count < KEYS; count += 1) await world.applyKey({ budgets: [MONTH] }, `bot-${count}`)
    await world.settledKey({}, 'free')
    const lost = statusWrites()
    await applyModel({ ...PRICED, pricing: undefined })
    expect([lost(), await enforceable('bot-0'), await enforceable(`bot-${KEYS - 1}`)]).toEqual([
      KEYS,
      'False PriceMissing',
      'False PriceMissing',
    ])
    const same = statusWrites()
    await applyModel({ ...PRICED, pricing: undefined, maxOutputTokens: 8192 })
    await applyModel(PRICED, 'other')
    expect(same()).toBe(0)
    const back = statusWrites()
    await applyModel(PRICED)
    expect(back()).toBe(KEYS)
  })
})
