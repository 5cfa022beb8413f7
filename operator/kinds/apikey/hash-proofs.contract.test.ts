import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { KeyTable } from '../../../gateway/auth/key-table.ts'
import { SHOP } from '../../../test/support/objects.ts'
import type { WorldCall } from '../../../test/support/operator-process.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import type { ApiKeySpec } from '#api/apikey.ts'
import { findCondition } from '#api/condition-list.ts'
import { apiKeys } from '#api/resources.ts'
import { KubeError } from '#kube/port.ts'
import { apiKeyRow } from './kind.ts'

const EVIL = 'evil'
const [VALUE, NEXT] = ['sk-1234567890abcdefghijAB', 'sk-zyxwvutsrqponmlkjihgCD'] as const
let world: OperatorWorld

beforeEach(() => {
  world = new OperatorWorld([apiKeyRow])
})
afterEach(() => world.stop())

const hex = (text: string): string => createHash('sha256').update(text).digest('hex')
/** As docs/security.md says. */
const proof = (value: string, namespace: string, name = 'bot'): string => hex(`headgate-proof-1\n${namespace}\n${name}\n${value}`)

function named(value: string, proofText?: string, more: Partial<ApiKeySpec> = {}): Partial<ApiKeySpec> {
  return { source: { type: 'Hash', hash: { sha256: hex(value), ...(proofText !== undefined && { proof: proofText }) } }, ...more }
}
const owned = (value: string = VALUE, more: Partial<ApiKeySpec> = {}): Partial<ApiKeySpec> => named(value, proof(value, SHOP), more)

async function accepted(namespace: string, name = 'bot'): Promise<string> {
  const condition = findCondition((await world.key(name, namespace)).status?.conditions, 'Accepted')
  return `${condition?.status} ${condition?.reason}`
}

async function isTold(namespace: string): Promise<boolean> {
  return findCondition((await world.key('bot', namespace)).status?.conditions, 'ValueNamedElsewhere')?.status === 'True'
}

/** Namespace and state of the key that a gateway finds for a value. */
async function holder(value: string): Promise<string | undefined> {
  const table = new KeyTable()
  const load = table.load()
  for (const text of await world.texts('key')) load.put((JSON.parse(text) as { uid: string }).uid, text)
  load.commit()
  const record = table.find(value)?.record
  return record && `${record.namespace} ${record.state}`
}

async function deleted(namespace = SHOP, name = 'bot'): Promise<void> {
  await world.objects.remove(apiKeys, { namespace, name })
  await world.settle()
}

describe('the hash of a key, named by another namespace', () => {
  test('makes no key there without a proof, unless the administrator has listed the namespace', async () => {
    await world.start({ unprovenHashNamespaces: [SHOP] })
    await world.settledKey(named(VALUE), 'bot', EVIL)
    await world.settledKey(named(NEXT), 'bot')
    expect([await accepted(EVIL), await accepted(SHOP)]).toEqual(['False ProofRequired', 'True Accepted'])
    expect([await holder(VALUE), await holder(NEXT)]).toEqual([undefined, `${SHOP} Active`])
  })

  test('keeps nothing from other ApiKeys, if it was named without a proof where one is needed', async () => {
    await world.start({ unprovenHashNamespaces: [] })
    await world.settledKey(named(VALUE), 'early')
    await world.pass(5)
    await world.settledKey(owned())
    expect([await accepted(SHOP, 'early'), await accepted(SHOP), await holder(VALUE)]).toEqual([
      'False ProofRequired',
      'True Accepted',
      `${SHOP} Active`,
    ])
  })

  test('makes no key there with a proof that was copied or invented, and the owner is told', async () => {
    await world.start({ unprovenHashNamespaces: [] })
    await world.settledKey(owned())
    expect(await isTold(SHOP)).toBe(false)
    await world.settledKey(named(VALUE, proof(VALUE, SHOP)), 'bot', EVIL)
    await world.settledKey(named(VALUE, hex('guess')), 'bot', 'worse')
    expect(await holder(VALUE)).toBe(`${SHOP} Active`)
    expect(await isTold(SHOP)).toBe(true)
    expect(world.events.filter(({ reason }) => reason === 'NamedElsewhere').length).toBeGreaterThan(0)
  })

  test('before its owner applies the manifest, does not keep the value from the owner', async () => {
    await world.start({ unprovenHashNamespaces: [] })
    await world.settledKey(named(VALUE, hex('guess')), 'bot', EVIL)
    expect(await holder(VALUE)).toBeUndefined()
    await world.settledKey(owned())
    expect([await holder(VALUE), await accepted(SHOP), await isTold(SHOP)]).toEqual([`${SHOP} Active`, 'True Accepted', true])
  })

  test('before a rotation is applied, does not get the calls of the new value', async () => {
    await world.start({ unprovenHashNamespaces: [] })
    await world.settledKey(owned())
    await world.settledKey(named(NEXT, hex('guess')), 'bot', EVIL)
    await world.settledKey(owned(NEXT))
    expect([await holder(VALUE), await holder(NEXT)]).toEqual([`${SHOP} Active`, `${SHOP} Active`])
  })

  test.each([
    ['with a proof', [], owned()],
    ['without one, in listed namespaces', ['*'], named(VALUE)],
  ])('after the key was revoked and deleted, never works there: %s', async (_case, listed, spec) => {
    await world.start({ unprovenHashNamespaces: listed })
    await world.settledKey(spec)
    await world.settledKey({ ...spec, state: 'Revoked' })
    await deleted()
    await world.pass(49 * 3_600) // the keyring has forgotten the key
    await world.restart({ unprovenHashNamespaces: listed })
    await world.settledKey(named(VALUE), 'bot', EVIL)
    await world.settledKey(named(VALUE, hex('guess')), 'bot', 'worse')
    expect(await holder(VALUE)).toBeUndefined()
  })

  test('that the operator has generated is refused with any proof, even to one who knows the value', async () => {
    await world.start({ unprovenHashNamespaces: [] })
    await world.settledKey({}, 'bot')
    const value = await world.value()
    await world.settledKey(named(value, proof(value, EVIL)), 'bot', EVIL)
    expect([await holder(value), await accepted(EVIL)]).toEqual([`${SHOP} Active`, 'False DuplicateKey'])
  })
})

describe('the hash of a key, in its own namespace', () => {
  test('works no more once it was revoked, also for another ApiKey and after the key was deleted', async () => {
    await world.start({ unprovenHashNamespaces: [] })
    await world.settledKey(owned())
    await world.settledKey(owned(VALUE, { state: 'Revoked' }))
    await deleted()
    await world.pass(49 * 3_600)
    await world.settledKey(owned())
    expect([await holder(VALUE), await accepted(SHOP)]).toEqual([undefined, 'False ValueUsed'])
  })

  test('works again after a deletion alone, as when manifests come back from Git', async () => {
    await world.start({ unprovenHashNamespaces: ['*'] })
    for (const spec of [owned(), named(NEXT)]) {
      await world.settledKey(spec)
      await deleted()
      await world.settledKey(spec)
      expect(await accepted(SHOP)).toBe('True Accepted')
      await deleted()
    }
  })

  test('gets its proof later, and loses it only where none is needed', async () => {
    await world.start({ unprovenHashNamespaces: ['*'] })
    await world.settledKey(named(VALUE))
    await world.settledKey(named(VALUE, hex('wrong')))
    expect(await holder(VALUE)).toBeUndefined()
    await world.settledKey(owned())
    expect(await holder(VALUE)).toBe(`${SHOP} Active`)
    await world.restart({ unprovenHashNamespaces: [] })
    await world.settledKey(named(VALUE))
    expect((await world.keyRecords())[0]?.verifiers[0]?.proof).toBeDefined()
  })

  test('keeps working when its namespace is no longer listed', async () => {
    await world.start({ unprovenHashNamespaces: ['*'] })
    await world.settledKey(named(VALUE))
    await world.restart({ unprovenHashNamespaces: [] })
    await world.settledKey(named(VALUE, undefined, { displayName: 'Bot' }))
    expect([await holder(VALUE), await accepted(SHOP)]).toEqual([`${SHOP} Active`, 'True Accepted'])
  })
})

describe('while the used values cannot be written', () => {
  const areValues = (call: WorldCall): boolean => call.plural === 'secrets' && call.name.startsWith('hg-values-')
  const refused = new KubeError('Forbidden', 403, 'secrets is forbidden')

  test('a hash without a proof is not taken, and its owner reads why; it is taken once they can be', async () => {
    await world.start({ unprovenHashNamespaces: ['*'] })
    world.refuse((call) => call.verb !== 'list' && areValues(call), refused)
    await world.applyKey(named(VALUE))
    await world.during(world.sleep(20_000))
    expect(await holder(VALUE)).toBeUndefined()
    expect(await world.message(apiKeys, 'bot', 'Programmed')).toContain('secrets is forbidden')
    world.beforeCall = () => undefined
    await world.during(world.sleep(600_000))
    await world.settle()
    expect(await holder(VALUE)).toBe(`${SHOP} Active`)
  })

  test('a revoked key can be deleted', async () => {
    await world.start({ unprovenHashNamespaces: [] })
    await world.settledKey(owned())
    world.refuse((call) => call.verb !== 'list' && areValues(call), refused)
    await world.applyKey(owned(VALUE, { state: 'Revoked' }))
    await world.objects.remove(apiKeys, { namespace: SHOP, name: 'bot' })
    await world.during(world.sleep(60_000))
    expect(await world.objects.get(apiKeys, { namespace: SHOP, name: 'bot' })).toBeUndefined()
  })
})

test('gateways that check no proofs get no key that has one', async () => {
  world.reports = { features: ['limits', 'accounts'] }
  await world.serve(['old'])
  await world.start({ unprovenHashNamespaces: [] })
  await world.settledKey(owned())
  expect([await accepted(SHOP), await holder(VALUE)]).toEqual(['False GatewayTooOld', undefined])
})
