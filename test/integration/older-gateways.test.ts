/**
 * What gateways answer about keys that they or the operator cannot read: 503, never a false 401, and never the models and limits of an older
 * record. Keys that they can read work on.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { keyringEntries, replaceEntry, storedRecords, storeRecord } from '../support/durable-bytes.ts'
import { ask, WIRE_FORMATS, type WireFormat } from '../support/ask.ts'
import { numbered } from '../support/at-once.ts'
import { answerOf, untilEveryGateway } from '../support/gateway-answers.ts'
import { openLab } from '../support/lab.ts'
import { buildNextVersion, buildVersionBeforeLimits, buildVersionOfFewerEngines, NEXT_VERSION } from '../support/other-versions.ts'
import type { Program } from '../support/program.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const lab = openLab()

/** Asks gateways about values all the time. @returns a function that ends this, and returns the answers that came */
function asking(gateways: readonly Program[], values: readonly string[]): () => Promise<readonly number[]> {
  const answers = new Set<number>()
  let isOver = false
  const work = Promise.all(
    gateways.map(async (gateway) => {
      while (!isOver) for (const value of values) answers.add(await answerOf(gateway, value))
    }),
  )
  return async () => {
    isOver = true
    await work
    return [...answers].toSorted((a, b) => a - b)
  }
}

describe('a gateway without limits, beside this version', () => {
  let stack: Stack
  let older: Program
  let value = ''

  beforeAll(async () => {
    const bundles = await buildVersionBeforeLimits(lab.folder)
    stack = await lab.stack({ gateways: 1 })
    older = await stack.addGateway({ bundles })
    await stack.publishGateways()
    value = await stack.issueKey('grows')
    await untilEveryGateway(stack.gateways, value, 200)
  })

  it('refuses a key that it knows from the moment at which the key gets limits, and this version goes on to admit it', async () => {
    const end = asking([stack.gateway], [value])
    await stack.kube.merge(stack.path('ApiKey', 'grows'), { spec: { limits: { requestsPerMinute: 1_000_000 } } })
    await untilEveryGateway([older], value, 503)
    const object = await stack.untilCondition('ApiKey', 'grows', 'LimitsEnforceable', { status: 'False', reason: 'GatewayTooOld' })
    expect(JSON.stringify(object.status.conditions)).not.toContain('last record')
    expect(await end()).toEqual([200])
    expect(await answerOf(older, value)).toBe(503)
  })

  it('refuses it from its mounted keyring if Redis is away when the key gets limits', async () => {
    const grown = await stack.issueKey('grows-alone')
    await untilEveryGateway(stack.gateways, grown, 200)
    await stack.redis.stop()
    await stack.kube.merge(stack.path('ApiKey', 'grows-alone'), { spec: { limits: { requestsPerMinute: 1_000_000 } } })
    await untilEveryGateway([older], grown, 503)
    await stack.redis.start()
    await untilEveryGateway([stack.gateway], grown, 200)
    await untilEveryGateway([older], grown, 503)
  })

  it('learns that the key is suspended, and does not call it suspended when it works again', async () => {
    await stack.setState('grows', 'Suspended')
    await untilEveryGateway(stack.gateways, value, 401)
    await stack.setState('grows', 'Active')
    await untilEveryGateway([stack.gateway], value, 200)
    await untilEveryGateway([older], value, 503)
  })

  it('admits the key again once it has no limits', async () => {
    await stack.kube.merge(stack.path('ApiKey', 'grows'), { spec: { limits: null } })
    await untilEveryGateway(stack.gateways, value, 200)
  })
})

describe('a gateway that does not know an engine, beside this version', () => {
  it('has every model but that of the engine, which is not Ready, and learns of all revocations', async () => {
    const stack = await lab.stack({ gateways: 1 })
    const older = await stack.addGateway({ bundles: await buildVersionOfFewerEngines(lab.folder) })
    await stack.publishGateways()
    const { port } = stack.site.modelServer
    const backendOf = (engine: string) => ({ name: 'llama', service: { name: 'llama', port }, upstreamModel: 'tiny', engine })
    await stack.serveModel('known', { backends: [backendOf('LlamaCpp')] })
    await stack.apply('ServedModel', 'newer', { backends: [backendOf('DeepSeek')] })
    const { status } = await stack.untilCondition('ServedModel', 'newer', 'Ready', { status: 'False', reason: 'NotProgrammed' })
    await eventually(async () => {
      const object = await stack.kube.get(stack.path('ServedModel', 'newer'))
      expect(JSON.stringify(object?.status), JSON.stringify(status)).toContain(
        `1 of 2 gateway pods have the model; not yet: ${older.spec.pod}`,
      )
    })
    const credential = await stack.issueKey('asks')
    await untilEveryGateway(stack.gateways, credential, 200)
    const statusOf = async (gateway: Program, model: string, format: WireFormat): Promise<number> =>
      (await ask(lab, gateway.url, { credential, model, format })).status
    for (const format of WIRE_FORMATS) {
      for (const gateway of stack.gateways) expect(await statusOf(gateway, 'known', format)).toBe(200)
      expect([await statusOf(stack.gateway, 'newer', format), await statusOf(older, 'newer', format)]).toEqual([200, 404])
    }
    await stack.setState('asks', 'Revoked')
    await untilEveryGateway(stack.gateways, credential, 401)
    await stack.untilCondition('ServedModel', 'known', 'Ready')
    await stack.remove(older)
    await stack.publishGateways()
    await stack.untilCondition('ServedModel', 'newer', 'Ready')
  })
})

describe('keys with entries of an unknown version', () => {
  let stack: Stack
  let valid: readonly string[] = []
  let neighbour = ''
  let resumed = ''

  beforeAll(async () => {
    stack = await lab.stack({ gateways: 1, operatorEnv: { KEYRING_SHARDS: '1' } })
    valid = await Promise.all(numbered('valid', 12).map((name) => stack.issueKey(name)))
    neighbour = await stack.issueKey('neighbour')
    resumed = await stack.issueKey('resumed')
    await stack.issueKey('deleted')
    await waitFor('all entries', async () => (await keyringEntries(stack)).length === 15)
    await stack.operator.stop()
    const later = (text: string): string => JSON.stringify({ ...(JSON.parse(text) as object), v: 3, models: { all: true } })
    for (const entry of await keyringEntries(stack)) {
      const { name, uid } = JSON.parse(entry.text) as { readonly name: string; readonly uid: string }
      if (name === 'neighbour') continue
      await replaceEntry(stack, entry, later(entry.text))
      await storeRecord(stack, uid, later((await storedRecords(stack))[uid] ?? '{}'))
    }
    await stack.operator.start()
    await stack.setState('resumed', 'Suspended')
    await stack.deleteKey('deleted')
    await untilEveryGateway(stack.gateways, resumed, 401)
  })

  it('get 503 from a gateway that starts after some of them were suspended or deleted, and other keys work there', async () => {
    const fresh = await stack.addGateway({ start: false })
    await fresh.launch()
    const end = asking([fresh], valid)
    await waitFor('it to answer the neighbour', async () => (await answerOf(fresh, neighbour)) === 200)
    await untilEveryGateway([fresh], valid[0] ?? '', 503)
    expect(await end()).not.toContain(401)
    await stack.publishGateways()
  })

  it('get 503 once Redis has lost their records, and other keys work', async () => {
    const end = asking(stack.gateways, valid)
    await stack.redis.admin.flushall()
    await eventually(async () => expect(await storedRecords(stack)).toHaveProperty('unread-keys'))
    for (const value of valid) await untilEveryGateway(stack.gateways, value, 503)
    await untilEveryGateway(stack.gateways, neighbour, 200)
    const fresh = await stack.addGateway()
    await untilEveryGateway([fresh], neighbour, 200)
    expect(await answerOf(fresh, valid[0] ?? '')).toBe(503)
    expect(await end()).not.toContain(401)
    await stack.setState('neighbour', 'Suspended')
    await untilEveryGateway(stack.gateways, neighbour, 401)
  })

  it('get 503 as soon as they work again after a suspension, also after a restart of the operator', async () => {
    await stack.setState('resumed', 'Active')
    await untilEveryGateway(stack.gateways, resumed, 503)
    await stack.operator.restart()
    await stack.setState('neighbour', 'Active')
    await untilEveryGateway(stack.gateways, neighbour, 200)
    for (const gateway of stack.gateways)
      expect([await answerOf(gateway, resumed), await answerOf(gateway, valid[1] ?? '')]).toEqual([503, 503])
  })
})

describe('an operator that cannot read its keyring', () => {
  it('hands the Lease to one that can, which then suspends the keys with such entries', async () => {
    const next = { bundles: await buildNextVersion(lab.folder) }
    const stack = await lab.stack({ gateways: 0, operators: 0 })
    const first = await stack.addOperator(next)
    await stack.addGateway(next)
    await stack.publishGateways()
    const value = await stack.issueKey('newer')
    let edits = 0
    await eventually(async () => {
      await stack.kube.merge(stack.path('ApiKey', 'newer'), { spec: { models: ['*', `edit-${(edits += 1)}`] } })
      expect((await keyringEntries(stack)).map(({ text }) => (JSON.parse(text) as { readonly v: number }).v)).toEqual([NEXT_VERSION])
    })
    const newer = await stack.addOperator(next)
    await newer.kill('SIGSTOP') // so that the older one leads first
    const old = await stack.addOperator()
    await first.stop()
    await waitFor('the older operator to lead', () => old.process.log().includes('"leading"'))
    await newer.kill('SIGCONT')
    await waitFor('the newer operator to lead', async () => (await stack.holder()).includes(newer.spec.pod))
    expect(old.process.log()).toContain('the Lease goes to another operator')
    await stack.setState('newer', 'Suspended')
    await untilEveryGateway(stack.gateways, value, 401)
  })
})
