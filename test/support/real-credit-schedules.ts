/** The random schedules of a CreditWorld on a real API server and a real Redis. */
import type { CreditKind, CreditStep } from './credit-schedules.ts'
import { checkRest } from './credit-rest.ts'
import type { CreditOperator } from './credit-operator.ts'
import { settle } from './manual-clock.ts'
import type { RealCreditWorld } from './real-credit-world.ts'

/** Time in which everything that a failure has left behind is repaired, ms. */
const REPAIRED_MS = 12_000
/** Time after which the holds of a dead process are dropped, ms. */
const DROPPED_MS = 45_000
/** Some payments are so large that gateways hold a float beside the requests. */
const LARGE = 500

interface Saved {
  redis: () => Promise<void>
  readonly accounts: Map<string, () => Promise<void>>
}

type Act = (world: RealCreditWorld, step: CreditStep, saved: Saved) => unknown

const cutOff: Act = (world, { at }) => (world.gateways[at].isCutOff = true)

const ACTS: Readonly<Record<CreditKind, Act>> = {
  pay: (world, { id, name, amount, isRefund, pick }) =>
    world.pay(`pay-${id}`, name, isRefund ? -amount : 2 * amount * (pick > 3 ? LARGE : 1)),
  admit: (world, { at, name, amount, pick }) => world.admit(at, name, amount, pick),
  settle: (world, { pick, percent }) => settleOne(world, pick, percent),
  pass: (world, { seconds }) => world.advance(seconds * 1_000),
  'catch up': (world) => world.catchUp(),
  report: (world, { at }) => world.gateways[at].reconnect(),
  'delete credit': (world, { id }) => world.deleteCredit(`pay-${id}`),
  'delete account': (world, { name }) => world.deleteAccount(name),
  'create account': (world, { name }) => world.createAccount(name),
  reopen: (world, { name }) => world.reopen(name),
  'back up': async (world, { name }, saved) => saved.accounts.set(name, await world.backedUp(name)),
  restore: (_world, { name }, saved) => saved.accounts.get(name)?.(),
  sync: (world, { at }) => world.gateways[at].sync(),
  see: async (world, { at }) => {
    await world.see()
    operatorAt(world, at).see()
  },
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
  'save store': async (world, _step, saved) => (saved.redis = await world.saved()),
  'roll back': (_world, _step, saved) => saved.redis(),
  kill: (world, { at }) => world.kill(at),
  freeze: cutOff,
  'cut off': cutOff,
  heal: (world) => world.heal(),
  forge: (world, { name }) => world.forgeTooLow(name),
  'save Secrets': () => undefined,
  'restore Secrets': () => undefined,
}

/** Runs one schedule to rest, and checks it. */
export async function playReal(world: RealCreditWorld, schedule: readonly CreditStep[]): Promise<void> {
  await world.lead()
  await world.createAccount('acme')
  await world.pay('pay-0', 'acme', 4)
  await world.catchUp()
  const saved: Saved = { redis: await world.saved(), accounts: new Map() }
  for (const step of schedule) await ACTS[step.do](world, step, saved)
  await rest(world)
  await checkRest(world)
}

/** Every failure ends, every request settles at what it holds, and the operator does all that is to be done. */
async function rest(world: RealCreditWorld): Promise<void> {
  for (const operator of world.operators) {
    operator.holdsWrite = undefined
    operator.dieAt(Infinity, 'before')
    operator.release()
  }
  world.heal()
  for (const gateway of world.gateways) gateway.losesReply = false
  await world.catchUp()
  world.leader.books.check()
  world.leader.credits.check()
  await world.advance(REPAIRED_MS)
  for (const { gateway, hold } of world.openHolds()) gateway.settle(hold, hold.amount)
  await world.advance(DROPPED_MS)
  await world.catchUp()
  await world.advance(REPAIRED_MS)
}

function operatorAt(world: RealCreditWorld, at: 0 | 1): CreditOperator {
  return world.operators[at] ?? world.leader
}

function settleOne(world: RealCreditWorld, pick: number, percent: number): void {
  const open = world.openHolds()
  const one = open[pick % Math.max(1, open.length)]
  if (one) one.gateway.settle(one.hold, Math.ceil((one.hold.amount * percent) / 100))
}
