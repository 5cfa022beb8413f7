/** Random schedules of payments, requests, edits and failures in a CreditWorld, each with a run to rest. */
import fc from 'fast-check'
import { checkRest, rest, type RestedWorld } from './credit-rest.ts'
import type { CreditOperator } from './credit-operator.ts'
import { CreditWorld } from './credit-world.ts'
import { settle } from './manual-clock.ts'

const USUAL = ['pay', 'pay', 'admit', 'admit', 'admit', 'admit', 'settle', 'settle', 'pass', 'pass', 'catch up', 'report'] as const
const OBJECTS = ['delete credit', 'delete account', 'create account', 'create account', 'reopen', 'back up', 'restore', 'sync'] as const
const LEADERS = ['see', 'see', 'work', 'work', 'lead', 'die', 'hold write', 'release'] as const
const LOSSES = ['wipe', 'wipe', 'lose reply', 'hours'] as const
const OLD_STATES = ['save store', 'roll back'] as const
const PROCESSES = ['kill', 'freeze', 'cut off', 'heal', 'forge'] as const
const SECRETS = ['save Secrets', 'restore Secrets'] as const

export type CreditKind =
  | (typeof USUAL)[number]
  | (typeof OBJECTS)[number]
  | (typeof LEADERS)[number]
  | (typeof LOSSES)[number]
  | (typeof OLD_STATES)[number]
  | (typeof PROCESSES)[number]
  | (typeof SECRETS)[number]

/** Every step has all fields, and uses some. */
export interface CreditStep {
  readonly do: CreditKind
  /** A gateway, or an operator: 0 is the newest. */
  readonly at: 0 | 1
  readonly name: 'acme' | 'beta'
  /** Of a Credit. */
  readonly id: number
  readonly amount: number
  readonly isRefund: boolean
  readonly pick: number
  readonly percent: number
  readonly seconds: number
  readonly write: number
  readonly when: 'before' | 'after'
}

function steps(...kinds: ReadonlyArray<readonly CreditKind[]>): fc.Arbitrary<CreditStep[]> {
  const step = fc.record({
    do: fc.constantFrom(...kinds.flat()),
    at: fc.constantFrom(0 as const, 1 as const),
    name: fc.constantFrom('acme' as const, 'acme' as const, 'beta' as const),
    id: fc.nat({ max: 3 }),
    amount: fc.integer({ min: 1, max: 4 }),
    isRefund: fc.constantFrom(false, false, false, true),
    pick: fc.nat({ max: 5 }),
    percent: fc.constantFrom(0, 50, 100),
    seconds: fc.constantFrom(1, 3, 7, 40),
    write: fc.nat({ max: 7 }),
    when: fc.constantFrom('before' as const, 'after' as const),
  })
  return fc.array(step, { minLength: 6, maxLength: 32, size: 'max' })
}

/** From one kind of failure to all together. */
export const CREDIT_SCHEDULES: Readonly<Record<string, fc.Arbitrary<CreditStep[]>>> = {
  'objects that come and go, and leaders that die or are deposed': steps(USUAL, OBJECTS, LEADERS),
  'a store that loses its data, and changes of period': steps(USUAL, LOSSES, LEADERS),
  'a store that goes back to an older state': steps(USUAL, LOSSES, OLD_STATES),
  'processes that die, freeze or are cut off': steps(USUAL, LOSSES, PROCESSES),
  'everything but older Secrets': steps(USUAL, OBJECTS, LEADERS, LOSSES, OLD_STATES, PROCESSES),
  'everything and older Secrets': steps(USUAL, OBJECTS, LEADERS, LOSSES, OLD_STATES, PROCESSES, SECRETS),
}

/** What a schedule does to any world of prepaid accounts. */
interface ScheduledWorld extends RestedWorld {
  readonly gateways: readonly [ScheduledGateway, ScheduledGateway]
  lead(prepare: (operator: CreditOperator) => void): Promise<unknown>
  work(operator: CreditOperator): Promise<void>
  pay(id: string, name: string, micros: number): Promise<void>
  deleteCredit(id: string): Promise<void>
  createAccount(name: string): Promise<void>
  deleteAccount(name: string): Promise<void>
  backedUp(name: string): Promise<() => Promise<void>>
  reopen(name: string): Promise<void>
  wipe(): unknown
  hours(): Promise<void>
  kill(at: 0 | 1): void
}

interface ScheduledGateway {
  isCutOff: boolean
  losesReply: boolean
  sync(): void
}

/** Backups of accounts, by name. */
export interface SavedAccounts {
  readonly accounts: Map<string, () => Promise<void>>
}

/** The steps that are the same in every world. */
export const COMMON_ACTS = {
  settle: (world, { pick, percent }) => settleOne(world, pick, percent),
  pass: (world, { seconds }) => world.pass(seconds * 1_000),
  'catch up': (world) => world.catchUp(),
  'delete credit': (world, { id }) => world.deleteCredit(`pay-${id}`),
  'delete account': (world, { name }) => world.deleteAccount(name),
  'create account': (world, { name }) => world.createAccount(name),
  reopen: (world, { name }) => world.reopen(name),
  'back up': async (world, { name }, saved) => saved.accounts.set(name, await world.backedUp(name)),
  restore: (_world, { name }, saved) => saved.accounts.get(name)?.(),
  sync: (world, { at }) => world.gateways[at].sync(),
  work: (world, { at }) => world.work(operatorAt(world, at)),
  lead: (world, { pick, write, when }) => world.lead((operator) => pick === 0 && operator.dieAt(write, when)),
  die: (world, { at, write, when }) => operatorAt(world, at).dieAt(write, when),
  'hold write': (world, { at }) => (operatorAt(world, at).holdsWrite = /./),
  release: async (world, { at }) => {
    operatorAt(world, at).release()
    await settle()
  },
  wipe: (world) => world.wipe(),
  'lose reply': (world, { at }) => (world.gateways[at].losesReply = true),
  hours: (world) => world.hours(),
  kill: (world, { at }) => world.kill(at),
  'cut off': (world, { at }) => (world.gateways[at].isCutOff = true),
  heal: (world) => world.heal(),
} satisfies Partial<Record<CreditKind, (world: ScheduledWorld, step: CreditStep, saved: SavedAccounts) => unknown>>

interface Saved extends SavedAccounts {
  store: () => void
  secrets: () => Promise<void>
}

type Act = (world: CreditWorld, step: CreditStep, saved: Saved) => unknown

const ACTS: Readonly<Record<CreditKind, Act>> = {
  ...COMMON_ACTS,
  pay: (world, { id, name, amount, isRefund }) => world.pay(`pay-${id}`, name, isRefund ? -amount : 2 * amount),
  admit: (world, { at, name, amount, pick }) => world.admit(world.gateways[at], name, amount, uidFor(world, name, pick)),
  report: (world, { at }) => world.gateways[at].report(),
  see: (world, { at }) => operatorAt(world, at).see(),
  'save store': (world, _step, saved) => (saved.store = world.store.save()),
  'roll back': (world, _step, saved) => world.rollBack(saved.store),
  freeze: (world, { at }) => (world.gateways[at].isFrozen = true),
  forge: (world, { name }) => forgeTooLow(world, name),
  'save Secrets': async (world, _step, saved) => (saved.secrets = await world.savedSecrets()),
  'restore Secrets': (_world, _step, saved) => saved.secrets(),
}

/** Runs one schedule to rest, and checks it. @param options.isPacked uses the codecs of production */
export async function playCredits(schedule: readonly CreditStep[], { isPacked = false } = {}): Promise<void> {
  const world = new CreditWorld({ isPacked })
  try {
    await beginAcme(world)
    const saved: Saved = { store: world.store.save(), secrets: () => Promise.resolve(), accounts: new Map() }
    for (const step of schedule) await ACTS[step.do](world, step, saved)
    await rest(world)
    await checkRest(world)
  } finally {
    world.stop()
  }
}

/** An account with a Credit of 4. */
export async function beginAcme(world: ScheduledWorld): Promise<void> {
  await world.lead(() => undefined)
  await world.createAccount('acme')
  await world.pay('pay-0', 'acme', 4)
  await world.catchUp()
}

export function operatorAt(world: RestedWorld, at: 0 | 1): CreditOperator {
  return world.operators[at] ?? world.leader
}

/** Most keys are of the present Account of a name, some of an earlier one. */
function uidFor(world: CreditWorld, name: string, pick: number): string | undefined {
  const uids = world.uids.get(name) ?? []
  return pick === 0 ? uids[0] : uids.at(-1)
}

function settleOne(world: RestedWorld, pick: number, percent: number): void {
  const open = world.openHolds()
  const one = open[pick % Math.max(1, open.length)]
  one?.settle(Math.ceil((one.amount * percent) / 100))
}

/** A foreign client lowers what an account has spent. Until that is found, which takes some seconds, the store grants too much. */
function forgeTooLow(world: CreditWorld, name: string): void {
  world.excuseLoss()
  world.excuses.overspend = true
  world.store.forge(world.leader.books.ledgerName(name), (balance) => {
    for (const key of balance.spent.keys()) balance.spent.set(key, 0)
  })
}
