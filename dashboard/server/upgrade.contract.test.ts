/** An upgrade of the dashboard on a file: people stay, a start that dies is completed by the next one, and a later database is left alone. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Misconfigured } from '#platform/lifecycle.ts'
import { describe, expect, test } from 'vitest'
import { MortalProcess } from '../../test/support/crashing-database.ts'
import { openWithGitHub } from '../../test/support/dashboard-requests.ts'
import { DashboardWorld } from '../../test/support/dashboard-world.ts'
import { createFormerAccounts, formerPeople, writeFormerFile } from '../../test/support/former-dashboard/former-dashboard.ts'
import { browserOf, expectPeopleStay } from '../../test/support/former-dashboard/people-stay.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { ObjectStore } from '../../standalone/object-store.ts'
import { TABLES_VERSION } from './identity/database-version.ts'

const { secret, maya } = formerPeople()
/** Takes away what later versions added, of the library's tables and of ours. */
const OLDER = `
  ALTER TABLE "headgateMember" DROP COLUMN "emailDueAt"; DROP TABLE "headgateProof"; DROP INDEX "headgateOutboxDue"; DROP TABLE "headgateVersion";
  DROP TABLE "rateLimit"; ALTER TABLE "twoFactor" DROP COLUMN "lockedUntil"`

async function former(changes = ''): Promise<{ readonly folder: string; readonly path: string; readonly store: ObjectStore }> {
  const [folder, store] = [temporaryFolder(), new ObjectStore()]
  const path = join(folder, 'dashboard.db')
  writeFormerFile(path, changes)
  await createFormerAccounts(store)
  return { folder, path, store }
}

/** Tables with their columns, and indexes, in any order. */
function shapeOf(path: string): readonly string[] {
  const file = new DatabaseSync(path, { readOnly: true })
  const all = (sql: string): readonly string[] =>
    file
      .prepare(sql)
      .all()
      .map((row) => Object.values(row).join(' '))
  const columns = all(`SELECT m.name AS "table", c.name, upper(c.type), c."notnull", c.pk FROM sqlite_master m, pragma_table_info(m.name) c
    WHERE m.type = 'table'`)
  const indexes =
    all(`SELECT m.name AS "table", i."unique", group_concat(c.name) FROM sqlite_master m, pragma_index_list(m.name) i, pragma_index_info(i.name) c
    WHERE m.type = 'table' GROUP BY m.name, i.name`)
  file.close()
  return [...columns, ...indexes].toSorted()
}

async function newShape(): Promise<readonly string[]> {
  const folder = temporaryFolder()
  await (await DashboardWorld.open({ folder }))[Symbol.asyncDispose]()
  return shapeOf(join(folder, 'dashboard.db'))
}

test.each([
  ['the version before', ''],
  ['a version before that, without tables, columns and indexes of later ones', OLDER],
])('people of %s stay signed in, sign in as before, and keep their Accounts', async (_, changes) => {
  const { folder, path, store } = await former(changes)
  const world = await openWithGitHub({ folder, store, secret })
  await expectPeopleStay(world)
  await world[Symbol.asyncDispose]()
  expect(shapeOf(path)).toEqual(await newShape())
})

describe('a start that is killed in the middle', () => {
  /** Starts a dashboard whose process dies at the given write. @returns the writes of a start that ends before that; undefined after a death */
  async function start(folder: string, store: ObjectStore, process: MortalProcess): Promise<readonly string[]> {
    const world = await DashboardWorld.prepare({
      folder,
      store,
      secret,
      database: { file: join(folder, 'dashboard.db'), open: process.open },
    })
    const writes = await world.start().then(
      () => [...process.writes],
      () => undefined,
    )
    await world[Symbol.asyncDispose]().catch(() => undefined) // the process is dead
    return writes ?? process.writes
  }

  test.each([
    ['of an older database', OLDER],
    ['of an empty one', undefined],
  ] as const)('%s, at whatever write, is completed by the next start', async (_, changes) => {
    const begin = async (): Promise<{ folder: string; store: ObjectStore }> =>
      changes === undefined ? { folder: temporaryFolder(), store: new ObjectStore() } : await former(changes)
    const whole = await begin()
    const writes = (await start(whole.folder, whole.store, new MortalProcess())).findIndex((sql) => /^\s*commit/i.test(sql)) + 1
    expect(writes).toBeGreaterThan(changes === undefined ? 15 : 5)
    const expected = await newShape()
    for (const when of ['before', 'after'] as const) {
      for (let write = 1; write <= writes; write += 1) {
        const { folder, store } = await begin()
        const process = new MortalProcess({ write, when })
        await start(folder, store, process)
        expect([write, process.isDead]).toEqual([write, true])
        await using world = await DashboardWorld.open({ folder, store, secret })
        if (changes !== undefined) expect((await browserOf(world, maya).get('/api/me')).json().account).toMatchObject({ state: 'Active' })
        expect(shapeOf(join(folder, 'dashboard.db')), `a death ${when} ${process.writes.at(-1)}`).toEqual(expected)
      }
    }
  })
})

describe('a database of a later version', () => {
  test('ends the start with both versions and what to do, and its file stays as it is, byte for byte', async () => {
    const { folder, path, store } = await former(`UPDATE "headgateVersion" SET version = ${TABLES_VERSION + 1}; DROP TABLE "headgateProof"`)
    const before = readFileSync(path)
    await expect(DashboardWorld.open({ folder, store, secret })).rejects.toThrow(
      new Misconfigured(
        `DATABASE_FILE: the database has version ${TABLES_VERSION + 1}, and this dashboard knows versions up to ${TABLES_VERSION}; install the ` +
          'version of Headgate that wrote the database, or restore the backup from before the upgrade. The database was not changed',
      ),
    )
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path)))).toEqual([basename(path)])
  })
})
