/** Writes the files of this folder: people live a while in the present dashboard, and the database becomes text. README.md says when to run this. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { WITH_BACKUP_CODE } from '../../../dashboard/server/pages/two-factor.ts'
import type { MailTransport } from '../../../dashboard/server/mail/transport.ts'
import { openWithGitHub, signInThrough, turnOnTwoFactor } from '../dashboard-requests.ts'
import { DashboardWorld, type FormBrowser, PASSWORD, SECRET, tokenOf } from '../dashboard-world.ts'
import { PostgresPart } from '../postgres.ts'
import { waitFor } from '../wait-for.ts'
import { type FormerPeople, type FormerPerson, pathOf } from './former-dashboard.ts'

type Row = Readonly<Record<string, unknown>>
const WAITING = 'waiting@fernwood.example'

const folder = mkdtempSync(join(tmpdir(), 'headgate-former-'))
try {
  const file = join(folder, 'dashboard.db')
  const people = await live(folder)
  const database = new DatabaseSync(file, { readOnly: true })
  const tables = rowsOf(database)
  writeFileSync(pathOf('json'), `${JSON.stringify(people, null, 2)}\n`)
  writeFileSync(pathOf('sqlite.sql'), `${schemaOf(database)}\n${inserts(tables, () => false)}\n`)
  database.close()
  writeFileSync(pathOf('postgres.sql'), await postgresDump(folder, tables))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function live(folder: string): Promise<FormerPeople> {
  let isAway = false
  const transport: MailTransport = {
    send: (letter) => (isAway ? Promise.reject(new Error('the mail server is away')) : world.mails.send(letter)),
    close: () => undefined,
  }
  const world = await openWithGitHub({ folder, hasRealHashes: true, transport })
  const [maya, noor, sam] = [await world.person('maya@fernwood.example'), await world.person('noor@fernwood.example'), world.browser()]
  await maya.call('PATCH', '/api/me', { name: 'Maya' })
  const { secret: appSecret, backupCodes, freshCode } = await turnOnTwoFactor(noor)
  await signInByCodes(world, freshCode, backupCodes[0] ?? '')
  await signInThrough(sam, 'github', { email: 'sam@fernwood.example' })
  await world.browser().post('/sign-up', { email: 'kim@fernwood.example', password: PASSWORD })
  await world.browser().post('/reset', { email: 'maya@fernwood.example' })
  const { link } = await world.mails.wait('maya@fernwood.example', 'reset')
  const known = { maya: await personOf(maya), noor: await personOf(noor), sam: await personOf(sam) }
  const { outboxRows, mail } = world.dashboard.identity
  await waitFor('an empty outbox', async () => (await outboxRows.waiting()) === 0)
  isAway = true
  await mail.queue(WAITING, 'known-address', {})
  await world[Symbol.asyncDispose]()
  return {
    secret: SECRET,
    password: PASSWORD,
    maya: { ...known.maya, name: 'Maya', resetToken: tokenOf(link) },
    noor: { ...known.noor, appSecret, backupCodes },
    sam: known.sam,
    kim: { email: 'kim@fernwood.example' },
    waitingMailTo: WAITING,
  }
}

/** One sign-in by a code of the app, and one by a backup code. */
async function signInByCodes(world: DashboardWorld, appCode: string, backupCode: string): Promise<void> {
  for (const fields of [{ code: appCode }, { code: backupCode, with: WITH_BACKUP_CODE }]) {
    const browser = world.browser()
    await browser.post('/sign-in', { email: 'noor@fernwood.example', password: PASSWORD })
    const { status, heading } = await browser.post('/two-factor', fields)
    if (status !== 303) throw new Error(`a code was answered ${status}: ${heading}`)
  }
}

async function personOf(browser: FormBrowser): Promise<FormerPerson> {
  const me = (await browser.get('/api/me')).json()
  return { email: me.person.email, accountName: me.account.name, cookie: browser.cookies.get('headgate.session_token') ?? '' }
}

/** By table; people come first, because other rows refer to them. */
function rowsOf(database: DatabaseSync): ReadonlyMap<string, readonly Row[]> {
  const names = database.prepare(`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name <> 'user', name`).all()
  return new Map(names.map(({ name }) => [String(name), database.prepare(`SELECT * FROM "${String(name)}"`).all()]))
}

function schemaOf(database: DatabaseSync): string {
  const rows = database.prepare(`SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name <> 'user', name`).all()
  return rows.map(({ sql }) => `${String(sql)};`).join('\n')
}

function inserts(tables: ReadonlyMap<string, readonly Row[]>, isBoolean: (table: string, column: string) => boolean): string {
  const literal = (value: unknown): string => {
    if (value === null) return 'NULL'
    return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : JSON.stringify(value) // numbers and booleans
  }
  return [...tables]
    .flatMap(([table, rows]) =>
      rows.map((row) => {
        const values = Object.entries(row).map(([column, value]) =>
          literal(value !== null && isBoolean(table, column) ? value === 1 : value),
        )
        const columns = Object.keys(row).map((column) => `"${column}"`)
        return `INSERT INTO "${table}" (${columns.join(', ')}) VALUES (${values.join(', ')});`
      }),
    )
    .join('\n')
}

/** The tables as the present dashboard makes them in Postgres, with the rows of the file. */
async function postgresDump(folder: string, tables: ReadonlyMap<string, readonly Row[]>): Promise<string> {
  const postgres = await PostgresPart.start(mkdtempSync(join(tmpdir(), 'headgate-former-')))
  try {
    const url = await postgres.createDatabase('former')
    await (await DashboardWorld.open({ folder, database: { url } }))[Symbol.asyncDispose]()
    const columns = await postgres.query(
      `SELECT table_name || ' ' || column_name AS name FROM information_schema.columns WHERE data_type = 'boolean'`,
      url,
    )
    const booleans = new Set(columns.map(({ name }) => name))
    const bin = execFileSync('pg_config', ['--bindir'], { encoding: 'utf8' }).trim()
    const schema = execFileSync(join(bin, 'pg_dump'), ['--schema-only', '--no-owner', '--no-privileges', url], { encoding: 'utf8' })
    const statements = schema.split('\n').filter((line) => line !== '' && !/^(--|\\|SET |SELECT pg_catalog)/.test(line)) // of psql, and of the session
    return `${statements.join('\n')}\n${inserts(tables, (table, column) => booleans.has(`${table} ${column}`))}\n`
  } finally {
    await postgres.stop()
  }
}
