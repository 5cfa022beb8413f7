/**
 * kill -9 of the real operator process at each write of the life of a prepaid account, before the write is applied and after it but before its
 * answer. Each time another operator goes on, and in the end every Credit counts once, the balance is exact, and nothing waits for ever.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { decodeAccountRecord } from '#contract/records/account-record.ts'
import { formatSumAmount } from '#contract/values/signed-micros.ts'
import { bookCodec } from '../../operator/shards/account-book.ts'
import { creditCodec } from '../../operator/shards/credit-entry.ts'
import type { ShardCodec } from '../../operator/shards/shard-codec.ts'
import { CrashingStack } from '../support/crashing-stack.ts'
import { conditionOf, objectPath } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { projectionHead } from '../support/projection-view.ts'
import type { Stack } from '../support/stack.ts'
import { eventually } from '../support/wait-for.ts'

/** More writes than any story has. */
const MAX_WRITES = 60
/** Time without a write after which the next schedule begins, ms. */
const QUIET_MS = 800
const API = 'headgate.dev/v1alpha1'
const MICROS = 1_000_000

const lab = openLab()
let crashing: CrashingStack
let stack: Stack

beforeAll(async () => {
  const plane = await lab.ownControlPlane() // one installation of a cluster has accounts
  crashing = await CrashingStack.open(lab, { gateways: 1, operatorEnv: { ACCOUNTS: 'true' } }, plane)
  stack = crashing.stack
})
afterAll(() => crashing.close())

interface Story {
  readonly name: string
  readonly least: number
  readonly prepare: (account: string) => Promise<unknown>
  readonly act: (account: string) => Promise<unknown>
  /** Credits of the account in the end, units by the end of their name. */
  readonly paid: Readonly<Record<string, number>>
}

const PAID = { a: 25, b: 0.5, refund: -10 }

const stories: readonly Story[] = [
  {
    name: 'creation of a Plan and an Account with two Credits and a refund',
    least: 8,
    prepare: () => Promise.resolve(),
    act: (account) => open(account).then(() => payAll(account)),
    paid: PAID,
  },
  {
    name: 'deletion and recreation of an Account that is reopened, with replayed Credits',
    least: 6,
    prepare: async (account) => {
      await open(account)
      await payAll(account)
      await checkRest(account, PAID)
    },
    act: async (account) => {
      const former = await stack.kube.get(stack.path('Account', account))
      await stack.kube.remove(stack.path('Account', account))
      for (const id of Object.keys(PAID)) await stack.kube.remove(creditPath(`${account}-${id}`))
      await stack.apply('Account', account, spec(account))
      await payAll(account)
      const reopen = { metadata: { annotations: { 'headgate.dev/reopen-books': former?.metadata.uid } } }
      await stack.kube.merge(stack.path('Account', account), reopen)
      await pay(`${account}-late`, account, 1.000001)
    },
    paid: { ...PAID, late: 1.000001 },
  },
]

it.each(stories)(
  '$name: killed before and after each write, every Credit counts once',
  async ({ name, least, prepare, act, paid }) => {
    const killedAt: string[] = []
    for (const when of ['before', 'after'] as const) {
      for (let write = 0; write < MAX_WRITES; write += 1) {
        const account = `crash-${stories.findIndex((one) => one.name === name)}-${when}-${write}`
        await prepare(account)
        await crashing.quiet(QUIET_MS)
        crashing.arm({ write, when })
        await act(account)
        await checkRest(account, paid)
        const { hasKilled } = crashing.gate
        crashing.gate.disarm()
        if (!hasKilled) break
        killedAt.push(`${when} ${crashing.gate.seen[write]}`)
        await crashing.leadsAgain()
        await pay(`${account}-last`, account, 2) // the operator still books
        await checkRest(account, { ...paid, last: 2 })
      }
    }
    process.stdout.write(`killed ${killedAt.join('\nkilled ')}\n`)
    expect(killedAt.length, killedAt.join('\n')).toBeGreaterThanOrEqual(2 * least)
    expect(crashing.crashes).toEqual([])
  },
  900_000,
)

const spec = (account: string): object => ({
  planRef: { name: account },
  billing: 'Prepaid',
  namespaces: { matchLabels: { 'kubernetes.io/metadata.name': stack.namespace } },
})

async function open(account: string): Promise<void> {
  await stack.apply('Plan', account)
  await stack.apply('Account', account, spec(account))
}

async function payAll(account: string): Promise<void> {
  for (const [id, amount] of Object.entries(PAID)) await pay(`${account}-${id}`, account, amount)
}

async function pay(id: string, account: string, amount: number): Promise<void> {
  const type = amount < 0 ? 'Refund' : 'TopUp'
  await stack.kube.apply({
    apiVersion: API,
    kind: 'Credit',
    metadata: { name: id },
    spec: { accountRef: { name: account }, amount: String(amount), type },
  })
}

function creditPath(id: string): string {
  return objectPath(API, 'Credit', '', id)
}

/** Each Credit is Booked and counts once, and the balance is their sum: in the status, in the books, and in what gateways read. */
async function checkRest(account: string, paid: Readonly<Record<string, number>>): Promise<void> {
  const wanted = Object.entries(paid).map(([id, amount]) => ({ id: `${account}-${id}`, micros: Math.round(amount * MICROS) }))
  const sum = BigInt(wanted.reduce((total, { micros }) => total + micros, 0))
  await eventually(async () => {
    const object = await stack.kube.get(stack.path('Account', account))
    expect([conditionOf(object, 'Ready')?.reason, object?.['status']?.balance?.amount], account).toEqual(['Ready', formatSumAmount(sum)])
    for (const { id } of wanted) expect(conditionOf(await stack.kube.get(creditPath(id)), 'Booked')?.status, id).toBe('True')
    expect(
      (await entries('credits', creditCodec))
        .filter((one) => one.account === account)
        .map(({ id, micros }) => ({ id, micros }))
        .sort(byId),
    ).toEqual(wanted.sort(byId))
    expect((await entries('balances', bookCodec())).filter((one) => one.name === account).map(({ owner }) => owner)).toEqual([
      object?.metadata.uid,
    ])
    expect(await publishedSums(account)).toEqual([String(sum)])
  })
}

async function entries<Entry>(set: string, codec: ShardCodec<Entry>): Promise<readonly Entry[]> {
  const secrets = await stack.kube.list(objectPath('v1', 'Secret', stack.operatorNamespace))
  const shards = secrets.filter(({ metadata }) => metadata.name.startsWith(`hg-${set}-`))
  const decoded = await Promise.all(shards.map((secret) => codec.decode(secret['data'] as Record<string, string>)))
  return decoded.flatMap((shard) => shard.entries.flatMap(({ entry }) => entry ?? []))
}

/** Σ credits in each Active record of the account. */
async function publishedSums(account: string): Promise<unknown[]> {
  const { epoch } = await projectionHead(stack)
  const records = Object.values(await stack.redis.admin.hgetall(`hg:{proj}:${epoch}:accounts`)).map(decodeAccountRecord)
  return records.filter(({ name, state }) => name === account && state === 'Active').map(({ balance }) => balance?.credits)
}

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : 1
}
