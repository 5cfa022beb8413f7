/** The verification of an address at the same moment as the deletion of its row, in both orders. Runs on any database. */
import { accounts } from '#api/resources.ts'
import { expect } from 'vitest'
import { type DashboardWorld, type FormBrowser, PASSWORD, tokenOf } from './dashboard-world.ts'

const MINUTE_MS = 61_000
const WEEK_AND_A_DAY_MS = 8 * 86_400_000

interface Waiting {
  readonly email: string
  readonly browser: FormBrowser
  readonly token: string
}

/** Somebody who has signed up, and has the link. */
async function waitingOne(world: DashboardWorld, email: string): Promise<Waiting> {
  const [person] = await waiting(world, [email])
  if (person === undefined) throw new Error('nobody signed up')
  return person
}

/** The same for several people. */
async function waiting(world: DashboardWorld, emails: readonly string[]): Promise<readonly Waiting[]> {
  const people: Waiting[] = []
  for (const email of emails) {
    const browser = world.browser()
    await browser.post('/sign-up', { email, password: PASSWORD })
    people.push({ email, browser, token: tokenOf((await world.mails.wait(email, 'verify')).link) })
  }
  return people
}

/** Makes the rows old enough for the sweep. The dashboard begins a sweep by itself then. */
async function sweepAWeekLater(world: DashboardWorld): Promise<void> {
  world.clock.move(WEEK_AND_A_DAY_MS)
  await world.dashboard.sweep()
}

const verify = async ({ browser, token }: Waiting): Promise<number> => (await browser.post('/verify', { token })).status

/** Runs `task` once, right before or right after the next call of the library's database with this name for people. */
async function around(world: DashboardWorld, name: 'findMany' | 'updateMany', when: 'before' | 'after', task: () => Promise<unknown>) {
  const adapter = (await world.dashboard.identity.auth.$context).adapter as unknown as Record<string, (query: unknown) => Promise<unknown>>
  const former = adapter[name]
  if (former === undefined) throw new Error(`the library has no ${name}`)
  adapter[name] = async (query) => {
    if ((query as { model: string }).model !== 'user') return await former(query)
    adapter[name] = former
    if (when === 'before') await task()
    const result = await former(query)
    if (when === 'after') await task()
    return result
  }
}

/** The person has a session and one Account; or there is no person, no session and no Account. */
async function expectWholeOrNobody(world: DashboardWorld, { email, browser }: Waiting, isThere: boolean): Promise<void> {
  const me = await browser.get('/api/me')
  const found = await (await world.dashboard.identity.auth.$context).internalAdapter.findUserByEmail(email)
  const owned = (await world.store.list(accounts, '')).filter(({ spec }) => spec.owner?.email === email)
  const state = { me: me.status, isVerified: found?.user.emailVerified, accounts: owned.length }
  expect(state, email).toEqual(isThere ? { me: 200, isVerified: true, accounts: 1 } : { me: 401, isVerified: undefined, accounts: 0 })
  if (!isThere) return
  const again = world.browser()
  expect((await again.post('/sign-in', { email, password: PASSWORD })).location).toBe('/')
  expect((await world.dashboard.identity.members.of(found?.user.id ?? ''))?.accountName).toBe(owned[0]?.metadata.name)
}

/** The person verifies after the sweep has read who is unverified, and before the sweep deletes. */
export async function verifiedBeforeTheDeletion(world: DashboardWorld): Promise<void> {
  const person = await waitingOne(world, 'before@race.example')
  const verified = Promise.withResolvers<number>()
  await around(world, 'findMany', 'after', async () => verified.resolve(await verify(person)))
  world.clock.move(WEEK_AND_A_DAY_MS) // begins a sweep
  expect(await verified.promise).toBe(303)
  await world.dashboard.sweep()
  await expectWholeOrNobody(world, person, true)
}

/** The sweep deletes the row after the link was read, and before the row is verified. */
export async function deletedBeforeTheVerification(world: DashboardWorld): Promise<void> {
  const person = await waitingOne(world, 'after@race.example')
  await around(world, 'updateMany', 'before', () => sweepAWeekLater(world))
  expect(await verify(person)).toBe(422)
  await expectWholeOrNobody(world, person, false)
}

/** A stranger signs up with the address after the link was read: the link must not verify the stranger. */
export async function replacedBeforeTheVerification(world: DashboardWorld): Promise<void> {
  const person = await waitingOne(world, 'replaced@race.example')
  const stranger = world.browser()
  await around(world, 'updateMany', 'before', async () => {
    world.clock.move(MINUTE_MS) // for the next mail to the address, without which no sign-up replaces the row
    await stranger.post('/sign-up', { email: person.email, password: 'another quiet heron' })
  })
  expect(await verify(person)).toBe(422)
  const again = world.browser()
  expect((await again.post('/sign-in', { email: person.email, password: 'another quiet heron' })).status).toBe(403)
  expect((await world.store.list(accounts, '')).filter(({ spec }) => spec.owner?.email === person.email)).toEqual([])
}

/** Sweeps and verifications of many people at once. */
export async function allAtOnce(world: DashboardWorld): Promise<void> {
  const people = await waiting(
    world,
    Array.from({ length: 12 }, (_, n) => `race-${n}@race.example`),
  )
  world.clock.move(WEEK_AND_A_DAY_MS)
  const [statuses] = await Promise.all([
    Promise.all(people.map(verify)),
    ...Array.from({ length: 4 }, async () => await world.dashboard.sweep()),
  ])
  expect(statuses.filter((status) => status !== 303 && status !== 422)).toEqual([])
  for (const [n, person] of people.entries()) await expectWholeOrNobody(world, person, statuses[n] === 303)
}
