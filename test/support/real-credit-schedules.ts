/** The random schedules of a CreditWorld on a real API server and a real Redis. */
import { beginAcme, COMMON_ACTS, type CreditKind, type CreditStep, operatorAt, type SavedAccounts } from './credit-schedules.ts'
import { checkRest, rest } from './credit-rest.ts'
import type { RealCreditWorld } from './real-credit-world.ts'

/** Some payments are so large that gateways hold a float beside the requests. */
const LARGE = 500

interface Saved extends SavedAccounts {
  redis: () => Promise<void>
}

type Act = (world: RealCreditWorld, step: CreditStep, saved: Saved) => unknown

const ACTS: Readonly<Record<CreditKind, Act>> = {
  ...COMMON_ACTS,
  pay: (world, { id, name, amount, isRefund, pick }) =>
    world.pay(`pay-${id}`, name, isRefund ? -amount : 2 * amount * (pick > 3 ? LARGE : 1)),
  admit: (world, { at, name, amount, pick }) => world.admit(at, name, amount, pick),
  report: (world, { at }) => world.gateways[at].reconnect(),
  see: async (world, { at }) => {
    await world.see()
    operatorAt(world, at).see()
  },
  'save store': async (world, _step, saved) => (saved.redis = await world.saved()),
  'roll back': (_world, _step, saved) => saved.redis(),
  freeze: COMMON_ACTS['cut off'],
  forge: (world, { name }) => world.forgeTooLow(name),
  'save Secrets': () => undefined,
  'restore Secrets': () => undefined,
}

/** Runs one schedule to rest, and checks it. */
export async function playReal(world: RealCreditWorld, schedule: readonly CreditStep[]): Promise<void> {
  await beginAcme(world)
  const saved: Saved = { redis: await world.saved(), accounts: new Map() }
  for (const step of schedule) await ACTS[step.do](world, step, saved)
  await rest(world)
  await checkRest(world)
}
