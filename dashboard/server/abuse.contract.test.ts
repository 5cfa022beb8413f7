/** Many requests at once, from few and from many sources: what is bounded, and what goes on meanwhile. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { DashboardWorld, type FormBrowser, PASSWORD, type Visit } from '../../test/support/dashboard-world.ts'
import { listening } from '../../test/support/listening.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { createHealthServer } from './health.ts'
import { WRONG_PASSWORDS } from './identity/throttle.ts'

const MAYA = 'maya@fernwood.example'

describe('while all turns to check passwords are taken', () => {
  test('some wait, the others are told when to come back, everything else is answered, and signed-in people get a turn', async () => {
    await using world = await DashboardWorld.open({ folder: temporaryFolder() })
    const browser = await world.person(MAYA)
    const { hashes, throttle } = world.dashboard.identity
    const held = Promise.withResolvers<void>()
    const turns = [hashes.run(() => held.promise), hashes.run(() => held.promise)]
    const visits = Array.from({ length: 100 }, (_, n) =>
      n % 2 === 0
        ? world.browser().post('/sign-in', { email: MAYA, password: PASSWORD })
        : world.browser().post('/sign-up', { email: `person-${n}@fernwood.example`, password: PASSWORD }),
    )
    const refused: Visit[] = []
    for (const visit of visits) void visit.then((answer) => answer.status === 503 && refused.push(answer))
    await expect.poll(() => refused.length + hashes.waiting).toBe(100)
    expect(refused.length).toBeGreaterThanOrEqual(100 - 52)
    expect(new Set(refused.map(({ headers }) => headers.get('retry-after')))).toEqual(new Set(['5']))
    expect(new Set(refused.map(({ heading }) => heading))).toEqual(new Set(['Sign-in is busy right now']))
    // nothing below is queued behind the passwords
    expect((await world.browser().get('/sign-in')).status).toBe(200)
    expect((await browser.get('/api/me')).status).toBe(200)
    expect((await browser.get('/settings')).status).toBe(200)
    await throttle.clear(WRONG_PASSWORDS, MAYA)
    await expectHealthy(world)
    const confirm = browser.call('POST', '/api/confirm', { password: PASSWORD }) // waits behind few of them, and is not refused
    held.resolve()
    await Promise.all(turns)
    expect((await confirm).status).toBe(204)
    const answers = (await Promise.all(visits)).filter(({ status }) => status !== 503)
    expect(answers.length).toBe(100 - refused.length) // all who waited
  })
})

async function expectHealthy(world: DashboardWorld): Promise<void> {
  const { identity, metrics } = world.dashboard
  const health = createHealthServer({ isDead: () => false, ping: () => identity.ping(), registry: metrics.registry })
  const url = `http://127.0.0.1:${await listening(health)}`
  const answers = await Promise.all(['/livez', '/readyz', '/metrics'].map((path) => fetch(url + path)))
  const [, , scraped] = await Promise.all(answers.map((answer) => answer.text()))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(scraped).toContain('headgate_dashboard_waiting_passwords 52')
  health.close()
  health.closeAllConnections()
}

describe('mails to one address', () => {
  test.each([
    ['/sign-up', 'verify', { email: 'victim@fernwood.example', password: PASSWORD }],
    ['/sign-up', 'known-address', { email: MAYA, password: PASSWORD }],
    ['/reset', 'reset', { email: MAYA }],
  ])('are sixty seconds apart and five a day, from however many sources (%s: %s)', async (path, mail, fields) => {
    await using world = await DashboardWorld.open({ folder: temporaryFolder() })
    if (fields.email === MAYA) await world.person(MAYA)
    world.clock.move(61_000)
    const storm = async (): Promise<number> => {
      const answers = await Promise.all(Array.from({ length: 10 }, () => world.browser().post(path, fields)))
      expect(new Set(answers.map(({ status, location }) => `${status} ${location}`)).size).toBe(1) // the answer does not tell
      await world.dashboard.identity.idle()
      await expect.poll(() => world.dashboard.identity.outboxRows.waiting()).toBe(0)
      return world.mails.of(fields.email, mail).length
    }
    const first = mail === 'known-address' ? 4 : 5 // the verification of Maya was one of the five
    const counts: number[] = []
    for (let minute = 0; minute < 6; minute += 1) {
      counts.push(await storm())
      world.clock.move(61_000)
    }
    expect(counts).toEqual([1, 2, 3, 4, 5, 5].map((count) => Math.min(count, first)))
    world.clock.move(24 * 3_600_000)
    expect(await storm()).toBe(first + 1)
  })

  test('are sixty seconds apart also where people with accounts ask for a new address', async () => {
    await using world = await DashboardWorld.open({ folder: temporaryFolder() })
    for (const name of ['ana', 'ben', 'cem']) {
      const browser = await world.person(`${name}@fernwood.example`)
      expect((await browser.call('POST', '/api/email', { email: 'victim@fernwood.example' })).status).toBe(202)
    }
    await world.dashboard.identity.idle()
    await expect.poll(() => world.dashboard.identity.outboxRows.waiting()).toBe(0)
    expect(world.mails.of('victim@fernwood.example', 'new-address').length).toBe(1)
  })
})

describe('requests of one source', () => {
  const tries = async (browsers: readonly FormBrowser[]): Promise<readonly Visit[]> => {
    const answers: Visit[] = []
    for (const browser of browsers) answers.push(await browser.post('/sign-in', { email: 'nobody@fernwood.example', password: PASSWORD }))
    return answers
  }
  const from = (world: DashboardWorld, addresses: readonly string[]): FormBrowser[] =>
    addresses.map((address) => world.browser({ 'x-forwarded-for': address }))

  test('are refused after three sign-ins in ten seconds, with the time to wait; other sources are not', async () => {
    await using world = await DashboardWorld.open({ folder: temporaryFolder() })
    const answers = await tries(
      from(
        world,
        Array.from({ length: 4 }, () => '203.0.113.7'),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 429])
    expect(Number(answers[3]?.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await tries(from(world, ['203.0.113.8'])))[0]?.status).toBe(403)
  })

  test('cost no more writes to the database once they are refused', async () => {
    let writes = 0
    const folder = temporaryFolder()
    const open = (path: string): DatabaseSync => {
      const file = new DatabaseSync(path)
      const prepare = file.prepare.bind(file)
      file.prepare = (statement: string) => {
        if (/^(insert|update|delete)/i.test(statement)) writes += 1
        return prepare(statement)
      }
      return file
    }
    await using world = await DashboardWorld.open({ folder, database: { file: join(folder, 'dashboard.db'), open } })
    const sources = (count: number): FormBrowser[] =>
      from(
        world,
        Array.from({ length: count }, () => '203.0.113.7'),
      )
    expect((await tries(sources(4))).at(-1)?.status).toBe(429)
    const before = writes
    expect((await tries(sources(5))).map(({ status }) => status)).toEqual([429, 429, 429, 429, 429])
    expect([before > 0, writes]).toEqual([true, before])
  })

  test.each([
    ['a forged part in front of what the proxy wrote', ['a', 'b', 'c', 'd'].map((forged, n) => `198.51.100.${n}, ${forged}, 203.0.113.7`)],
    ['addresses of one IPv6 network', ['1', '2', '3', '4'].map((end) => `2001:db8:1:2::${end}`)],
  ])('are counted as one source with %s', async (_, addresses) => {
    await using world = await DashboardWorld.open({ folder: temporaryFolder() })
    expect((await tries(from(world, addresses))).map(({ status }) => status)).toEqual([403, 403, 403, 429])
  })

  test('are counted by the connection where no proxy is trusted, whatever the header says', async () => {
    await using world = await DashboardWorld.open({ folder: temporaryFolder(), trustedProxies: [] })
    const answers = await tries(from(world, ['203.0.113.1', '203.0.113.2', '203.0.113.3', '203.0.113.4']))
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 429])
  })
})
