/** A gateway or an operator of the version before accounts beside one of this version: what each key answers, and how fast it is revoked. */
import { beforeAll, describe, expect, it } from 'vitest'
import { answerOf, untilEveryGateway } from '../support/gateway-answers.ts'
import { openLab } from '../support/lab.ts'
import { buildVersionBeforeAccounts } from '../support/other-versions.ts'
import type { Program } from '../support/program.ts'
import type { Stack } from '../support/stack.ts'

const lab = openLab()
const ACCOUNT = 'upgraded'
let bundles = ''
let stack: Stack

beforeAll(async () => {
  bundles = await buildVersionBeforeAccounts(lab.folder)
  const plane = await lab.ownControlPlane() // one installation of a cluster has accounts
  stack = await lab.stack({ gateways: 1, operatorEnv: { ACCOUNTS: 'true' } }, plane)
  const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': stack.namespace } }
  await stack.apply('Plan', ACCOUNT)
  await stack.apply('Account', ACCOUNT, { planRef: { name: ACCOUNT }, namespaces })
  await stack.untilCondition('Account', ACCOUNT, 'Ready')
})

/** Revokes a key, and prints how long the gateways took. */
async function revoked(name: string, credential: string, gateways: readonly Program[]): Promise<void> {
  const startedMs = performance.now()
  await stack.setState(name, 'Revoked')
  await untilEveryGateway(gateways, credential, 401)
  process.stdout.write(
    `the revocation of ${name} held on ${gateways.length} gateways after ${Math.round(performance.now() - startedMs)} ms\n`,
  )
}

describe('a gateway of the version before accounts, beside this operator', () => {
  let former: Program

  it('keeps keys of accounts from being issued, and all others work', async () => {
    former = await stack.addGateway({ bundles })
    await stack.publishGateways()
    const plain = await stack.issueKey('plain')
    await untilEveryGateway(stack.gateways, plain, 200)
    await expect
      .poll(async () => JSON.stringify((await stack.kube.get(stack.path('ApiKey', 'early')))?.status ?? (await early())), {
        timeout: 60_000,
      })
      .toContain('GatewayTooOld')
    await revoked('plain', plain, stack.gateways)
    await stack.remove(former)
    await stack.publishGateways()
    await stack.untilCondition('ApiKey', 'early', 'Ready', { deadlineMs: 120_000 })
    await untilEveryGateway(stack.gateways, await stack.value('early'), 200)

    async function early(): Promise<undefined> {
      await stack.apply('ApiKey', 'early', { accountRef: { name: ACCOUNT } })
    }
  })

  it('after a rollback, refuses keys of accounts with 503, admits none without its account, and learns of all revocations', async () => {
    const [plain, inAccount] = [await stack.issueKey('plain-2'), await stack.issueKey('in-account', { accountRef: { name: ACCOUNT } })]
    former = await stack.addGateway({ bundles })
    await stack.publishGateways()
    expect([await answerOf(former, plain), await answerOf(former, inAccount), await answerOf(stack.gateway, inAccount)]).toEqual([
      200, 503, 200,
    ])
    await stack.kube.merge(stack.path('Account', ACCOUNT), { spec: { state: 'Suspended' } })
    await untilEveryGateway([stack.gateway], inAccount, 401)
    expect(await answerOf(former, inAccount)).toBe(503)
    await stack.kube.merge(stack.path('Account', ACCOUNT), { spec: { state: 'Active' } })
    await untilEveryGateway([stack.gateway], inAccount, 200)
    await revoked('plain-2', plain, stack.gateways)
    await revoked('in-account', inAccount, stack.gateways)
    await stack.remove(former)
    await stack.publishGateways()
  })
})

describe('an operator of the version before accounts, beside this gateway', () => {
  it('revokes all keys without one, and no key of an account is admitted without its account', async () => {
    const [plain, inAccount] = [await stack.issueKey('plain-3'), await stack.issueKey('in-account-2', { accountRef: { name: ACCOUNT } })]
    await stack.remove(stack.operator)
    await stack.addOperator({ bundles, env: { ACCOUNTS: 'false' } })
    const later = await stack.issueKey('later')
    await untilEveryGateway(stack.gateways, later, 200)
    await revoked('plain-3', plain, stack.gateways)
    expect([200, 503]).toContain(await answerOf(stack.gateway, inAccount)) // with its account as it was, or not at all
    await stack.remove(stack.operator)
    await stack.addOperator()
    await untilEveryGateway(stack.gateways, inAccount, 200)
    await revoked('in-account-2', inAccount, stack.gateways)
  })
})
