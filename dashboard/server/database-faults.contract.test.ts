/** The file of the database is lost, locked, full, read-only, damaged or old: what answers, what heals, and that the fault is never the person's. */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { accounts } from '#api/resources.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import { describe, expect, test } from 'vitest'
import { FailingVolume } from '../../test/support/crashing-database.ts'
import { DashboardWorld, type FormBrowser, PASSWORD, tokenOf, type Visit } from '../../test/support/dashboard-world.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { isDatabaseFailure } from './identity/database-failure.ts'

const MAYA = 'maya@fernwood.example'

interface Faulty extends AsyncDisposable {
  readonly world: DashboardWorld
  readonly path: string
  /** The connection of the dashboard itself. */
  readonly file: DatabaseSync
}

async function opened(): Promise<Faulty> {
  const folder = temporaryFolder()
  const path = join(folder, 'dashboard.db')
  let file: DatabaseSync | undefined
  const open = (name: string): DatabaseSync => (file = new DatabaseSync(name))
  const world = await DashboardWorld.open({ folder, database: { file: path, open } })
  if (file === undefined) throw new Error('the file was not opened')
  return { world, path, file, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
}

/** Our trouble: a status that says so, when to try again, and the number that leads to the log. */
function expectOurTrouble(visit: Visit): void {
  expect([visit.status, visit.headers.get('retry-after')], visit.text).toEqual([503, '10'])
  const id = visit.headers.get('x-request-id') ?? 'none'
  expect(visit.text).toContain(id)
  expect(visit.text).toMatch(/A part of the dashboard does not answer|The database of the dashboard does not answer/)
}

const FAULTS: readonly (readonly [string, (faulty: Faulty) => () => void])[] = [
  [
    'locked by another process',
    ({ path, file }) => {
      file.exec('PRAGMA busy_timeout = 1') // only shortens the test
      const other = new DatabaseSync(path)
      other.exec('BEGIN IMMEDIATE')
      return () => other.close()
    },
  ],
  [
    'read-only',
    ({ file }) => {
      file.exec('PRAGMA query_only = 1')
      return () => file.exec('PRAGMA query_only = 0')
    },
  ],
]

describe.each(FAULTS)('the file is %s', (_, fault) => {
  test('changes are answered "try again", pages that need no change come, and all heals by itself', async () => {
    await using faulty = await opened()
    const { world } = faulty
    const browser = await world.person(MAYA)
    await browser.call('POST', '/api/email', { email: 'new@fernwood.example' })
    const { link } = await world.mails.wait('new@fernwood.example', 'new-address')
    await world.browser().post('/sign-up', { email: 'sam@fernwood.example', password: PASSWORD })
    const sam = await world.mails.wait('sam@fernwood.example', 'verify')
    await world.browser().post('/reset', { email: MAYA })
    const reset = await world.mails.wait(MAYA, 'reset')
    await mailsAreSent(world)
    const heal = fault(faulty)
    for (const visit of await changes(world, browser)) expectOurTrouble(visit)
    // a link that could not be used is not a dead one
    expectOurTrouble(await browser.post('/verify', { token: tokenOf(link) }))
    expectOurTrouble(await world.browser().post('/verify', { token: tokenOf(sam.link), password: PASSWORD }))
    expectOurTrouble(await world.browser().post('/reset/new', { token: tokenOf(reset.link), password: 'another quiet heron' }))
    expect((await world.browser().get('/sign-in')).status).toBe(200)
    expect((await browser.get('/api/me')).status).toBe(200)
    heal()
    expect((await browser.post('/verify', { token: tokenOf(link) })).location).toBe('/settings')
    expect((await world.browser().post('/verify', { token: tokenOf(sam.link), password: PASSWORD })).location).toBe('/')
    expect((await browser.call('POST', '/api/sign-out', {})).status).toBe(204)
    expect((await browser.post('/sign-in', { email: 'new@fernwood.example', password: PASSWORD })).status).toBe(303)
  })
})

async function changes(world: DashboardWorld, browser: FormBrowser): Promise<readonly Visit[]> {
  const stranger = world.browser()
  return [
    await stranger.post('/sign-up', { email: 'ana@fernwood.example', password: PASSWORD }),
    await stranger.post('/sign-in', { email: MAYA, password: PASSWORD }),
    await stranger.post('/reset', { email: MAYA }),
    await browser.call('POST', '/api/sign-out', {}),
    await browser.call('PATCH', '/api/me', { name: 'Maya' }),
    await browser.call('POST', '/api/email', { email: 'other@fernwood.example' }),
    await browser.call('POST', '/api/account/delete', { email: MAYA }),
  ]
}

async function mailsAreSent(world: DashboardWorld): Promise<void> {
  await expect.poll(() => world.dashboard.identity.outboxRows.waiting()).toBe(0)
}

test('an I/O error at any statement of a request is never told as a mistake of the person, and the same request works later', async () => {
  const folder = temporaryFolder()
  const volume = new FailingVolume()
  await using world = await DashboardWorld.open({ folder, database: { file: join(folder, 'dashboard.db'), open: volume.open } })
  const browser = await world.person(MAYA)
  const during = async (failing: RegExp, visit: () => Promise<Visit>): Promise<void> => {
    volume.failing = failing
    expectOurTrouble(await visit())
    volume.failing = undefined
  }
  await during(/insert into "user"/, () => world.browser().post('/sign-up', { email: 'sam@fernwood.example', password: PASSWORD }))
  await during(/select .* from "session"/, () => browser.get('/api/me'))
  await during(/select .* from "session"/, () => browser.get('/settings'))
  await during(/insert into "session"/, () => world.browser().post('/sign-in', { email: MAYA, password: PASSWORD }))
  await during(/from "account"/, () => world.browser().post('/sign-in', { email: MAYA, password: PASSWORD }))
  await during(/delete from "session"/, () => browser.call('POST', '/api/sign-out', {}))
  await during(/from "headgateMember"/, () => browser.get('/api/me'))
  expect((await browser.get('/api/me')).status).toBe(200)
  const signUp = world.browser()
  await signUp.post('/sign-up', { email: 'sam@fernwood.example', password: PASSWORD })
  const { link } = await world.mails.wait('sam@fernwood.example', 'verify')
  await during(/update "user"/, () => signUp.post('/verify', { token: tokenOf(link) }))
  await during(/from "user"/, () => signUp.get(link))
  expect((await signUp.post('/verify', { token: tokenOf(link) })).location).toBe('/')
})

test('a database that cannot be read at all signs nobody out, and says so to the probe', async () => {
  await using faulty = await opened()
  const browser = await faulty.world.person(MAYA)
  await mailsAreSent(faulty.world)
  for (const table of ['session', 'headgateMember']) faulty.file.exec(`ALTER TABLE "${table}" RENAME TO "${table}_away"`)
  const me = await browser.get('/api/me')
  expect([me.status, me.json().error.code]).toEqual([500, 'internal'])
  expect((await browser.get('/settings')).status).toBe(500)
  await expect(faulty.world.dashboard.identity.ping()).rejects.toThrow('headgateMember')
  for (const table of ['session', 'headgateMember']) faulty.file.exec(`ALTER TABLE "${table}_away" RENAME TO "${table}"`)
  await faulty.world.dashboard.identity.ping()
  expect((await browser.get('/api/me')).status).toBe(200)
})

test('a full disk is answered "try again", keeps what is stored, and heals by itself', async () => {
  await using faulty = await opened()
  const { world, file } = faulty
  const browser = await world.person(MAYA)
  await mailsAreSent(world)
  const pagesOf = (): number => Number(file.prepare('PRAGMA page_count').get()?.['page_count'])
  file.exec(`PRAGMA max_page_count = ${pagesOf()}`)
  let refused: Visit | undefined
  for (let n = 0; refused === undefined; n += 1) {
    const visit = await world.browser().post('/sign-up', { email: `person-${n}@fernwood.example`, password: PASSWORD })
    if (visit.status !== 303) refused = visit // until then, there is room in the last pages
  }
  expectOurTrouble(refused)
  expect((await browser.get('/api/me')).status).toBe(200)
  expect((await world.browser().get('/sign-in')).status).toBe(200)
  file.exec('PRAGMA max_page_count = 1000000')
  await world.person('sam@fernwood.example')
})

test('a try that our trouble prevented counts neither as a wrong password nor as a mail', async () => {
  await using faulty = await opened()
  const { world, file } = faulty
  await world.person(MAYA)
  await mailsAreSent(world)
  const failing = "BEGIN SELECT RAISE(FAIL, 'no'); END"
  file.exec(`CREATE TRIGGER a BEFORE UPDATE ON "rateLimit" ${failing}; CREATE TRIGGER b BEFORE INSERT ON "rateLimit" ${failing}`)
  for (let tries = 0; tries < 12; tries += 1) {
    const visit = await world.browser().post('/sign-in', { email: MAYA, password: PASSWORD })
    expect([tries, visit.status]).toEqual([tries, 500])
  }
  expect((await world.browser().post('/reset', { email: MAYA })).status).toBe(500)
  file.exec('DROP TRIGGER a; DROP TRIGGER b')
  expect((await world.browser().post('/sign-in', { email: MAYA, password: PASSWORD })).status).toBe(303)
  await world.browser().post('/reset', { email: MAYA })
  await world.mails.wait(MAYA, 'reset')
})

test('a file that is removed while the dashboard runs is missed at the next start; people sign up again, and keep their Accounts', async () => {
  await using faulty = await opened()
  const { world, path } = faulty
  const browser = await world.person(MAYA)
  const { name } = (await browser.get('/api/me')).json().account
  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true })
  expect((await browser.get('/api/me')).status).toBe(200)
  await world.stop()
  await world.start()
  expect((await browser.get('/api/me')).status).toBe(401)
  world.mails.mails.length = 0
  const again = await world.person(MAYA)
  expect((await again.get('/api/me')).json().account.name).toBe(name)
})

test('a day-old copy: its people sign in, later ones sign up again and get their Accounts back', async () => {
  await using faulty = await opened()
  const { world, path } = faulty
  await world.person(MAYA)
  await world.stop() // checkpoints, so that the one file is the whole database
  copyFileSync(path, `${path}.yesterday`)
  await world.start()
  const sam = await world.person('sam@fernwood.example')
  const { name } = (await sam.get('/api/me')).json().account
  await world.stop()
  for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`, { force: true })
  copyFileSync(`${path}.yesterday`, path)
  await world.start()
  expect((await world.browser().post('/sign-in', { email: MAYA, password: PASSWORD })).status).toBe(303)
  expect((await sam.get('/api/me')).status).toBe(401)
  world.mails.mails.length = 0
  expect((await (await world.person('sam@fernwood.example')).get('/api/me')).json().account.name).toBe(name)
  expect((await world.store.list(accounts, '')).length).toBe(2)
})

describe('at the start', () => {
  const start = (path: string): Promise<DashboardWorld> => DashboardWorld.open({ folder: temporaryFolder(), database: { file: path } })
  const RESTORE = 'restore the file from a backup, or move it away: people then sign up again, and keep their accounts by their addresses'

  test('a file that is not a database is refused with the remedy, and stays as it is', async () => {
    const path = join(temporaryFolder(), 'dashboard.db')
    const text = 'this is not a database'.repeat(100)
    writeFileSync(path, text)
    await expect(start(path)).rejects.toThrow(
      new Misconfigured(`DATABASE_FILE: ${path} cannot be used (file is not a database); ${RESTORE}`),
    )
    expect(readFileSync(path, 'utf8')).toBe(text)
  })

  test('a file with a damaged page is refused, although its head is whole', async () => {
    await using faulty = await opened()
    await faulty.world.person(MAYA)
    await faulty.world.stop()
    const bytes = readFileSync(faulty.path)
    bytes.fill(0xaa, 8_192, bytes.length)
    writeFileSync(faulty.path, bytes)
    await expect(start(faulty.path)).rejects.toThrow(RESTORE)
  })

  test('a file in the middle of a change of another process is refused with the remedy', async () => {
    const path = join(temporaryFolder(), 'dashboard.db')
    const other = new DatabaseSync(path)
    other.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
    await expect(start(path)).rejects.toThrow('stop the other process that has the file open: one dashboard alone may use a file')
    other.close()
  })

  test('a folder where the file should be is refused with the remedy', async () => {
    const path = join(temporaryFolder(), 'dashboard.db')
    mkdirSync(path)
    await expect(start(path)).rejects.toThrow('let the user of the dashboard write into its folder, and check the volume')
  })
})

describe('which errors are failures of the database', () => {
  const sqlite = (errcode: number): Error => Object.assign(new Error('…'), { code: 'ERR_SQLITE_ERROR', errcode })
  test.each([
    ['busy', sqlite(5), true],
    ['an I/O error with its extended code', sqlite(10 | (3 << 8)), true],
    ['a violated constraint', sqlite(19), false],
    ['Postgres that shuts down', Object.assign(new Error('…'), { code: '57P01' }), true],
    ['a unique violation of Postgres', Object.assign(new Error('…'), { code: '23505' }), false],
    ['a refused connection', Object.assign(new Error('…'), { code: 'ECONNREFUSED' }), true],
    ['a connection that ended', new Error('Connection terminated unexpectedly'), true],
    ['the cause of an error of the library', new Error('…', { cause: sqlite(13) }), true],
    [
      'a provider that does not answer',
      new TypeError('fetch failed', { cause: Object.assign(new Error('…'), { code: 'ECONNREFUSED' }) }),
      false,
    ],
    ['nothing', undefined, false],
  ])('%s', (_, error, expected) => expect(isDatabaseFailure(error)).toBe(expected))
})
