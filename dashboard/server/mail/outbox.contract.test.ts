/** Mails wait in the database until they are sent: over failures, restarts and several replicas. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { DashboardWorld, type DashboardWorldOptions, PASSWORD } from '../../../test/support/dashboard-world.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'
import { LEASE_MS } from './outbox.ts'
import type { Letter, MailTransport } from './transport.ts'

const MAYA = 'maya@fernwood.example'
const MINUTE_MS = 60_000

/** A mail server under the hands of a test. */
class Mailer implements MailTransport {
  readonly tries: string[] = []
  readonly ids: string[] = []
  act: (letter: Letter) => Promise<void> = async () => undefined

  async send(letter: Letter, id: string): Promise<void> {
    this.tries.push(letter.name)
    this.ids.push(id)
    await this.act(letter)
  }

  close = (): void => undefined
}

async function opened(mailer: Mailer, options: Partial<DashboardWorldOptions> = {}): Promise<{ world: DashboardWorld; path: string }> {
  const folder = temporaryFolder()
  return { world: await DashboardWorld.open({ folder, transport: mailer, ...options }), path: join(folder, 'dashboard.db') }
}

const signUp = (world: DashboardWorld): Promise<unknown> => world.browser().post('/sign-up', { email: MAYA, password: PASSWORD })
const waiting = (world: DashboardWorld): Promise<number> => world.dashboard.identity.outboxRows.waiting()
const dueOf = async (world: DashboardWorld): Promise<number> => (await world.dashboard.identity.outboxRows.nextDueMs()) ?? 0
const tried = (mailer: Mailer, times: number): Promise<void> => expect.poll(() => mailer.tries.length).toBe(times)

async function metric(world: DashboardWorld, outcome: string): Promise<string | undefined> {
  const text = await world.dashboard.metrics.registry.metrics()
  return new RegExp(`headgate_dashboard_mails_total\\{outcome="${outcome}"\\} (\\d+)`).exec(text)?.[1]
}

describe('a mail that cannot be sent', () => {
  test('is tried again after 15 s, 1, 5, 15 and 60 minutes, and then given up with a line in the log', async () => {
    const mailer = new Mailer()
    const { world } = await opened(mailer)
    await using _ = world
    let triedMs = 0
    let claimedUntilMs = 0
    mailer.act = async () => {
      triedMs = world.clock.now()
      claimedUntilMs = await dueOf(world)
      throw new Error('connect ECONNREFUSED')
    }
    await signUp(world)
    let tries = 1
    for (const waitMs of [15_000, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS]) {
      await expect.poll(() => metric(world, 'failed')).toBe(String(tries))
      await expect.poll(() => dueOf(world)).not.toBe(claimedUntilMs)
      const dueMs = await dueOf(world)
      expect(dueMs).toBeGreaterThanOrEqual(triedMs + waitMs)
      expect(dueMs).toBeLessThanOrEqual(world.clock.now() + waitMs)
      world.clock.move((dueMs - world.clock.now()) / 2)
      expect([await dueOf(world), mailer.tries.length]).toEqual([dueMs, tries])
      world.clock.move(dueMs - world.clock.now())
      tries += 1
    }
    await tried(mailer, tries)
    await expect.poll(() => waiting(world)).toBe(0)
    expect([await metric(world, 'failed'), await metric(world, 'given-up')]).toEqual(['5', '1'])
    const line = world.lines.map((text) => JSON.parse(text) as Record<string, unknown>).find(({ level }) => level === 'error')
    expect(line).toMatchObject({ mail: 'verify', attempts: 6, error: 'connect ECONNREFUSED', msg: 'a mail was not sent, and is given up' })
    expect(new Set(mailer.ids).size).toBe(1) // one Message-ID
    // the person asks again
    mailer.act = async () => undefined
    await signUp(world)
    await tried(mailer, tries + 1)
  })

  test('is logged without the address, which mail servers quote in their refusals', async () => {
    const mailer = new Mailer()
    mailer.act = () => Promise.reject(new Error(`Can't send mail: 550 5.1.1 <${MAYA}>: Recipient address rejected`))
    const { world } = await opened(mailer)
    await using _ = world
    await signUp(world)
    await expect.poll(() => metric(world, 'failed')).toBe('1')
    const log = world.lines.join('')
    expect(log).toContain("Can't send mail: 550 5.1.1 <the address>: Recipient address rejected")
    expect(log).not.toContain(MAYA)
  })

  test('does not hold up the others', async () => {
    const mailer = new Mailer()
    mailer.act = ({ to }) => (to === MAYA ? Promise.reject(new Error('no such mailbox')) : Promise.resolve())
    const { world } = await opened(mailer)
    await using _ = world
    await signUp(world)
    await world.browser().post('/sign-up', { email: 'sam@fernwood.example', password: PASSWORD })
    await expect.poll(() => metric(world, 'sent')).toBe('1')
    expect(await waiting(world)).toBe(1)
  })
})

test('several replicas send a mail once, however slow the mail server is, and one of them after the death of the other', async () => {
  const slow = new Mailer()
  const never = new Promise<never>(() => undefined)
  slow.act = () => never
  const { world, path } = await opened(slow)
  await signUp(world)
  await tried(slow, 1)
  const other = new Mailer()
  await using replica = await DashboardWorld.open({ folder: temporaryFolder(), transport: other, database: { file: path } })
  replica.clock.move(LEASE_MS - 5_000)
  await replica.dashboard.identity.mail.queue('sam@fernwood.example', 'known-address', {})
  await tried(other, 1)
  expect(other.tries).toEqual(['known-address'])
  replica.clock.move(30_000)
  await tried(other, 2)
  expect(other.tries).toEqual(['known-address', 'verify'])
  await expect.poll(() => waiting(replica)).toBe(0)
})

test('two replicas that look at the same moment share the mails, and send each once', async () => {
  const mailer = new Mailer()
  const { world, path } = await opened(mailer)
  await using _ = world
  await using __ = await DashboardWorld.open({ folder: temporaryFolder(), transport: mailer, database: { file: path } })
  for (let n = 0; n < 30; n += 1) await world.dashboard.identity.mail.queue(`person-${n}@fernwood.example`, 'known-address', {})
  await expect.poll(() => waiting(world)).toBe(0)
  expect([mailer.ids.length, new Set(mailer.ids).size]).toEqual([30, 30])
})

test('a mail that was sent is not sent again when its row cannot be removed', async () => {
  const mailer = new Mailer()
  const { world, path } = await opened(mailer)
  await using _ = world
  const file = new DatabaseSync(path)
  file.exec('CREATE TRIGGER kept BEFORE DELETE ON "headgateOutbox" BEGIN SELECT RAISE(FAIL, \'no\'); END')
  await signUp(world)
  await tried(mailer, 1)
  await expect.poll(() => world.lines.some((line) => line.includes('the outbox cannot be read'))).toBe(true)
  file.exec('DROP TRIGGER kept')
  file.close()
  world.clock.move(LEASE_MS)
  await expect.poll(() => waiting(world)).toBe(0)
  expect(mailer.tries).toEqual(['verify'])
})

test('a row tells neither the address nor the link', async () => {
  const mailer = new Mailer()
  const letters: Letter[] = []
  mailer.act = async (letter) => {
    letters.push(letter)
    throw new Error('not now')
  }
  const { world, path } = await opened(mailer)
  await using _ = world
  await signUp(world)
  await tried(mailer, 1)
  const file = new DatabaseSync(path, { readOnly: true })
  const text = JSON.stringify(file.prepare('SELECT * FROM "headgateOutbox"').all())
  file.close()
  expect(letters.map(({ to }) => to)).toEqual([MAYA])
  expect(text).not.toContain('maya')
  expect(Buffer.from(/"sealed":"([^"]+)"/.exec(text)?.[1] ?? '', 'base64url').toString('latin1')).not.toMatch(/maya|verify|token/)
})

test('mails under a former secret are deleted with a line in the log, and people can ask again', async () => {
  const mailer = new Mailer()
  mailer.act = () => Promise.reject(new Error('not now'))
  const { world } = await opened(mailer)
  await using _ = world
  await signUp(world)
  await tried(mailer, 1)
  await world.stop()
  mailer.act = async () => undefined
  await world.start({ secret: 'another secret of the tests that is long enough' })
  world.clock.move(61_000)
  await expect.poll(() => waiting(world)).toBe(0)
  expect(mailer.tries.length).toBe(1)
  expect(world.lines.some((line) => line.includes('the secret of the dashboard has changed since'))).toBe(true)
  await signUp(world)
  await tried(mailer, 2)
})

test('the stop waits for the mails under way, and begins no other', async () => {
  const mailer = new Mailer()
  const held = Promise.withResolvers<void>()
  mailer.act = () => held.promise
  const { world } = await opened(mailer)
  await signUp(world)
  await tried(mailer, 1)
  let isStopped = false
  const rows = world.dashboard.identity.outboxRows
  await world.dashboard.identity.mail.queue('sam@fernwood.example', 'known-address', {})
  const stopped = world.stop().then(() => (isStopped = true))
  await new Promise((resolve) => setImmediate(resolve))
  expect([isStopped, await rows.waiting()]).toEqual([false, 2])
  held.resolve()
  await stopped
  expect(mailer.tries).toEqual(['verify'])
  await world.start()
  await tried(mailer, 2) // nothing is lost
  await world[Symbol.asyncDispose]()
})

test('a held mail is sent after its release and not before, also if its row is gone by then, and no released mail can be dropped', async () => {
  const mailer = new Mailer()
  const { world } = await opened(mailer)
  const { mail, outboxRows: rows } = world.dashboard.identity
  const hold = () => mail.hold({ to: MAYA, name: 'known-address', parameters: {} }, { userId: 'maya', held: '{}' })
  const [first, dropped, lost] = [await hold(), await hold(), await hold()]
  await rows.drop(dropped.id)
  await rows.drop(lost.id)
  world.clock.move(10 * 86_400_000)
  await mail.queue('sam@fernwood.example', 'known-address', {})
  await tried(mailer, 1)
  expect([await rows.waiting(), (await rows.held({ userId: 'maya' })).map(({ id }) => id)]).toEqual([0, [first.id]])
  await world.dashboard.identity.mail.stop()
  await mail.release(first)
  await rows.drop(first.id)
  await mail.release(first)
  await mail.release(lost)
  expect([await rows.waiting(), await rows.held({ userId: 'maya' })]).toEqual([2, []])
  await world[Symbol.asyncDispose]()
})
