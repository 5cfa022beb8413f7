/** A hash is known to everybody who reads a manifest: what a stranger can do with one, against a real operator and real gateways. */
import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { ask as call } from '../support/ask.ts'
import { sha256 } from '../support/hash-keys.ts'
import { openLab } from '../support/lab.ts'
import type { Stack } from '../support/stack.ts'

const lab = openLab()
const [SHOP, EVIL] = ['proofs-shop', 'proofs-evil'] as const
const MODEL = 'proofs-model'
/** Of the keys of a namespace: they show which key a gateway takes a value for. */
const MODELS = { [SHOP]: [MODEL], [EVIL]: ['*'] }
let stack: Stack

beforeAll(async () => {
  stack = await lab.stack({ gateways: 2, namespaces: [SHOP, EVIL], operatorEnv: { UNPROVEN_HASH_NAMESPACES: '' } })
  for (const namespace of [SHOP, EVIL]) await stack.serveModel(MODEL, {}, namespace)
})

/** As docs/security.md says. */
const proofFor = (value: string, namespace: string, name: string): string =>
  createHash('sha256').update(`headgate-proof-1\n${namespace}\n${name}\n${value}`).digest('hex')

interface Named {
  readonly proof?: string
  readonly state?: 'Active' | 'Revoked'
}

async function named(
  value: string,
  namespace: typeof SHOP | typeof EVIL,
  name: string,
  { proof, state = 'Active' }: Named = {},
): Promise<void> {
  const source = { type: 'Hash', hash: { sha256: sha256(value), ...(proof !== undefined && { proof }) } }
  const models = MODELS[namespace]
  await stack.apply('ApiKey', name, { models, source, rotation: { overlapSeconds: 60 }, state }, namespace)
}

/** Applies the key of the owner and waits until it works. */
async function owned(value: string, name: string): Promise<void> {
  await named(value, SHOP, name, { proof: proofFor(value, SHOP, name) })
  await stack.untilCondition('ApiKey', name, 'Ready', { namespace: SHOP })
  await expect.poll(() => statuses(value)).toEqual([200, 200])
}

/** Tries all that a stranger can who has read the hash: no proof, a copied one, an invented one. Waits until each was decided. */
async function strangersName(value: string, name: string): Promise<void> {
  await named(value, EVIL, `${name}-bare`)
  await named(value, EVIL, `${name}-copied`, { proof: proofFor(value, SHOP, name) })
  await stack.untilCondition('ApiKey', `${name}-bare`, 'Accepted', { namespace: EVIL, status: 'False', reason: 'ProofRequired' })
  await stack.untilCondition('ApiKey', `${name}-copied`, 'Programmed', { namespace: EVIL, reason: 'Programmed' })
}

async function statuses(value: string): Promise<number[]> {
  const body = { model: MODEL, max_tokens: 4, messages: [{ role: 'user' as const, content: 'Say something.' }] }
  return Promise.all(stack.gateways.map(async ({ url }) => (await call(lab, url, { credential: value, body })).status))
}

/** The models of the key that each gateway takes the value for. */
async function modelsFor(value: string, gateways: readonly { readonly url: string }[] = stack.gateways): Promise<unknown[]> {
  const ask = async (url: string): Promise<unknown> => {
    const response = await fetch(`${url}/v1/key`, { headers: { authorization: `Bearer ${value}` } })
    return ((await response.json()) as { models?: unknown }).models
  }
  return Promise.all(gateways.map(({ url }) => ask(url)))
}
const BY_OWNER = [MODELS[SHOP], MODELS[SHOP]]

describe('a stranger who has read the SHA-256 of a value', () => {
  it('gets no call of a working key, and its owner is told', async () => {
    await owned('sk-proofs-working-value', 'working')
    await strangersName('sk-proofs-working-value', 'working')
    expect(await modelsFor('sk-proofs-working-value')).toEqual(BY_OWNER)
    await stack.untilCondition('ApiKey', 'working', 'ValueNamedElsewhere', { namespace: SHOP })
  })

  it('gets no call of a key that is revoked, and none after it was deleted', async () => {
    const value = 'sk-proofs-revoked-value'
    await owned(value, 'revoked')
    await strangersName(value, 'revoked')
    await named(value, SHOP, 'revoked', { proof: proofFor(value, SHOP, 'revoked'), state: 'Revoked' })
    await stack.untilCondition('ApiKey', 'revoked', 'Programmed', { namespace: SHOP, reason: 'Programmed' })
    await expect.poll(() => statuses(value)).toEqual([401, 401])
    await stack.deleteKey('revoked', SHOP)
    expect(await statuses(value)).toEqual([401, 401])
    await named(value, SHOP, 'again', { proof: proofFor(value, SHOP, 'again') })
    await stack.untilCondition('ApiKey', 'again', 'Accepted', { namespace: SHOP, status: 'False', reason: 'ValueUsed' })
    expect(await statuses(value)).toEqual([401, 401])
  })

  it('keeps a key that is not applied yet from nobody: its owner gets all calls, and is told', async () => {
    const value = 'sk-proofs-future-value'
    await strangersName(value, 'future')
    expect(await statuses(value)).toEqual([401, 401])
    await owned(value, 'future')
    expect(await modelsFor(value)).toEqual(BY_OWNER)
    await stack.untilCondition('ApiKey', 'future', 'ValueNamedElsewhere', { namespace: SHOP })
  })

  it('gets no call of a rotation that is not applied yet', async () => {
    await owned('sk-proofs-first-value', 'rotating')
    await strangersName('sk-proofs-second-value', 'rotating')
    await owned('sk-proofs-second-value', 'rotating')
    for (const value of ['sk-proofs-first-value', 'sk-proofs-second-value']) expect(await modelsFor(value)).toEqual(BY_OWNER)
  })

  it('gets no call of it from a gateway that starts without Redis', async () => {
    const value = 'sk-proofs-cold-value'
    await owned(value, 'cold')
    await strangersName(value, 'cold')
    await stack.redis.stop()
    const gateway = await stack.addGateway()
    expect(await modelsFor(value, [gateway])).toEqual([MODELS[SHOP]])
    await stack.redis.start()
  })
})
