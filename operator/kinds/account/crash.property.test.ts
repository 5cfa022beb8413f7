/** Every write of an operator that takes over a plan, an account and a key is killed once, in three ways. */
import { expect, test } from 'vitest'
import { decodeAccountRecord } from '#contract/records/account-record.ts'
import { account, namespace, plan, SHOP } from '../../../test/support/objects.ts'
import type { KillAt } from '../../../test/support/operator-process.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { accounts, apiKeys, plans } from '#api/resources.ts'
import { uidOf } from '#kube/port.ts'
import { namespaces } from '#kube/resources.ts'
import { isMarked, MARK_ANNOTATION, REOPEN_ANNOTATION } from '../../accounts/claim.ts'

const ACME = { namespace: '', name: 'acme' }
const WAYS: ReadonlyArray<KillAt['when']> = ['before', 'after', 'late']
/** More writes than the story has: the last ones kill nothing. */
const WRITES = 16

interface Chapter {
  readonly name: string
  readonly act: (world: OperatorWorld) => Promise<unknown>
  /** The state of the key at rest. */
  readonly ready: string
}

const live = async (world: OperatorWorld) => (await world.objects.get(accounts, ACME))!
const remade = async (world: OperatorWorld): Promise<void> => {
  const former = uidOf(await live(world))
  await world.objects.remove(accounts, ACME)
  await world.apply(accounts, account('acme', {}, { annotations: { [REOPEN_ANNOTATION]: former } }))
}

const CHAPTERS: readonly Chapter[] = [
  {
    name: 'a plan, an account and a key are created',
    act: async (world) => {
      await world.apply(plans, plan('pro'))
      await world.apply(accounts, account('acme'))
      await world.applyKey({ accountRef: { name: 'acme' } })
    },
    ready: 'True Ready',
  },
  {
    name: 'the account is suspended',
    act: (world) => world.apply(accounts, account('acme', { state: 'Suspended' })),
    ready: 'False AccountSuspended',
  },
  { name: 'the plan is narrowed and the account lifted', act: lifted, ready: 'True Ready' },
  { name: 'the account is deleted and succeeded by another', act: remade, ready: 'True Ready' },
]

async function lifted(world: OperatorWorld): Promise<void> {
  await world.apply(plans, plan('pro', { models: ['a'] }))
  await world.apply(accounts, account('acme'))
}

for (const [at, chapter] of CHAPTERS.entries()) {
  test(`while ${chapter.name}, a kill at any write wedges nothing, and lets no account spend before it is marked`, async () => {
    for (const when of WAYS) for (let write = 0; write < WRITES; write += 1) await killedAt({ write, when }, at)
  })
}

async function killedAt(kill: KillAt, at: number): Promise<void> {
  const what = JSON.stringify(kill)
  const world = new OperatorWorld()
  try {
    await world.apply(namespaces, namespace(SHOP))
    await world.start()
    for (const { act } of CHAPTERS.slice(0, at)) {
      await act(world)
      await world.settle()
    }
    await world.stopProcesses()
    await world.start({}, kill)
    await CHAPTERS[at]?.act(world)
    await world.settle()
    await expectMarked(world, what)
    await world.start()
    await world.settle()
    await world.landLate()
    await world.pass(700)
    await world.settle()
    await expectMarked(world, what)
    expect(await world.condition(apiKeys, 'bot', 'Ready'), what).toBe(CHAPTERS[at]?.ready)
    const records = (await world.texts('account')).map(decodeAccountRecord).filter(({ state }) => state !== 'Deleted')
    expect(
      records.map(({ uid }) => uid),
      what,
    ).toEqual([uidOf(await live(world))])
  } finally {
    await world.stop()
  }
}

/** Gateways have an Active account only if the operator has marked it. */
async function expectMarked(world: OperatorWorld, what: string): Promise<void> {
  const active = (await world.texts('account')).map(decodeAccountRecord).filter(({ state }) => state === 'Active')
  const present = await world.objects.get(accounts, ACME)
  for (const { uid } of active.filter((record) => record.uid === present?.metadata.uid)) {
    const [installation = ''] = (present?.metadata.annotations?.[MARK_ANNOTATION] ?? '').split('/')
    expect(present && isMarked(installation, present), `${what} ${uid}`).toBe(true)
  }
}
