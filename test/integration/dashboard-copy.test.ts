/** `copy-database`: a file becomes a Postgres, and the people notice nothing. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { DashboardWorld, PASSWORD } from '../support/dashboard-world.ts'
import { turnOnTwoFactor } from '../support/dashboard-requests.ts'
import { missingPostgres, PostgresPart } from '../support/postgres.ts'
import { temporaryFolder, temporaryFolderOfFile } from '../support/temporary-folder.ts'

const MAIN = join(import.meta.dirname, '../../dashboard/server/main.ts')
const missing = missingPostgres()
const folder = temporaryFolderOfFile()
let postgres: PostgresPart

beforeEach(({ skip }) => skip(missing !== undefined, missing))
beforeAll(async () => {
  if (missing === undefined) postgres = await PostgresPart.start(folder)
})
afterAll(async () => {
  if (missing === undefined) await postgres.stop()
})

interface Ended {
  readonly code: unknown
  readonly out: string
  readonly errors: string
}

async function copy(env: Readonly<Record<string, string>>): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, 'copy-database'], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, errors] = ['', '']
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()))
  const [code] = (await once(child, 'close')) as unknown[]
  return { code, out, errors }
}

const withPassword = (url: string): string => url.replace('postgres@', 'postgres:hunter2@')

test('passwords, sessions, two-factor, ids and times are those of the file, and the counts are printed', async () => {
  const files = temporaryFolder()
  const file = join(files, 'dashboard.db')
  await using world = await DashboardWorld.open({ folder: files, database: { file } })
  const maya = await world.person('maya@fernwood.example')
  const ana = await world.person('ana@fernwood.example')
  const { freshCode } = await turnOnTwoFactor(ana)
  await world.browser().post('/sign-up', { email: 'unverified@fernwood.example', password: PASSWORD })
  const before = (await maya.get('/api/me')).json()
  await world.stop()
  const url = await postgres.createDatabase('copied')
  const { code, out, errors } = await copy({ DATABASE_FILE: file, DATABASE_URL: withPassword(url) })
  expect([code, errors]).toEqual([0, ''])
  const source = new DatabaseSync(file, { readOnly: true })
  const rowsOf = (table: string): readonly Record<string, unknown>[] => source.prepare(`select * from "${table}" order by rowid`).all()
  const counts = Object.fromEntries(
    out
      .trim()
      .split('\n')
      .map((line) => line.split(' ')),
  )
  expect(counts).toMatchObject({ user: '3', session: '2', account: '3', twoFactor: '1', headgateMember: '2' })
  for (const [table, count] of Object.entries(counts)) {
    const rows = await postgres.query(`select * from "${table}"`, url)
    expect([table, String(rows.length)]).toEqual([table, count])
    expect(new Set(rows.map(comparable)), table).toEqual(new Set(rowsOf(table).map(comparable)))
  }
  source.close()
  await world.start({ database: { url } })
  expect((await maya.get('/api/me')).json()).toEqual(before)
  expect((await world.browser().post('/sign-in', { email: 'maya@fernwood.example', password: PASSWORD })).location).toBe('/')
  const again = world.browser()
  expect((await again.post('/sign-in', { email: 'ana@fernwood.example', password: PASSWORD })).location).toBe('/two-factor')
  expect((await again.post('/two-factor', { code: freshCode })).location).toBe('/')
  await world.person('sam@fernwood.example')
})

/** A row as one text: times as ms, booleans and numbers as numbers. */
function comparable(row: Readonly<Record<string, unknown>>): string {
  const plain = (value: unknown): unknown => {
    if (value instanceof Date || (typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value))) return new Date(value).getTime()
    if (typeof value === 'boolean') return Number(value)
    return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value // the client answers a bigint as text
  }
  return JSON.stringify(
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)])),
    Object.keys(row).toSorted((a, b) => a.localeCompare(b)),
  )
}

test('a target with rows, a missing file and a wrong database are refused; nothing is copied, and no output has the password', async () => {
  const files = temporaryFolder()
  const file = join(files, 'dashboard.db')
  await using world = await DashboardWorld.open({ folder: files, database: { file } })
  await world.person('maya@fernwood.example')
  await world.stop()
  const url = await postgres.createDatabase('taken')
  await world.start({ database: { url } })
  await world.person('ben@fernwood.example')
  await world.stop()
  const taken = await copy({ DATABASE_FILE: file, DATABASE_URL: withPassword(url) })
  expect(taken).toMatchObject({ code: 1, out: '' })
  expect(taken.errors).toMatch(/DATABASE_URL: its table user has rows/)
  expect((await postgres.query('select email from "user"', url)).map(({ email }) => email)).toEqual(['ben@fernwood.example'])
  const none = await copy({ DATABASE_FILE: `${file}.none`, DATABASE_URL: withPassword(url) })
  expect([none.code, none.errors]).toEqual([1, expect.stringContaining('dashboard.db.none does not exist')])
  const away = await copy({ DATABASE_FILE: file, DATABASE_URL: withPassword(postgres.url('nowhere')) })
  expect([away.code, away.errors]).toEqual([1, expect.stringContaining('DATABASE_URL: database "nowhere" does not exist')])
  const unset = await copy({ DATABASE_FILE: file })
  expect([unset.code, unset.errors]).toEqual([1, expect.stringContaining('set both')])
  expect([taken, none, away, unset].map(({ errors }) => errors).join('')).not.toContain('hunter2')
})

test('a row that the target does not take leaves the target empty', async () => {
  const files = temporaryFolder()
  const file = join(files, 'dashboard.db')
  await using world = await DashboardWorld.open({ folder: files, database: { file } })
  await world.person('maya@fernwood.example')
  await world.stop()
  const source = new DatabaseSync(file)
  source.exec(`update session set "createdAt" = 'no time'`)
  source.close()
  const url = await postgres.createDatabase('half')
  const { code, errors } = await copy({ DATABASE_FILE: file, DATABASE_URL: url })
  expect([code, errors]).toEqual([1, expect.stringContaining('nothing was copied')])
  expect(await postgres.query('select email from "user"', url)).toEqual([])
})
