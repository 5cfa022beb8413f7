/** An upgrade of the dashboard on Postgres: people of the version before stay, replicas that start at once bring the tables up to date once. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TABLES_VERSION } from '../../dashboard/server/identity/database-version.ts'
import { ObjectStore } from '../../standalone/object-store.ts'
import { openWithGitHub } from '../support/dashboard-requests.ts'
import { DashboardWorld } from '../support/dashboard-world.ts'
import { createFormerAccounts, formerPeople, formerStatements } from '../support/former-dashboard/former-dashboard.ts'
import { expectPeopleStay, expectSessionsStay } from '../support/former-dashboard/people-stay.ts'
import { missingPostgres, PostgresPart } from '../support/postgres.ts'
import { temporaryFolder, temporaryFolderOfFile } from '../support/temporary-folder.ts'

const missing = missingPostgres()
const folder = temporaryFolderOfFile()
const { secret } = formerPeople()
/** Takes away what later versions added, of the library's tables and of ours. */
const OLDER = `
  ALTER TABLE "headgateMember" DROP COLUMN "emailDueAt"; DROP TABLE "headgateProof"; DROP INDEX "headgateOutboxDue"; DROP TABLE "headgateVersion";
  DROP TABLE "rateLimit"; ALTER TABLE "twoFactor" DROP COLUMN "lockedUntil"`
/** A text for each column and index. */
const SHAPE = `
  SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable) AS line FROM information_schema.columns WHERE table_schema = 'public'
  UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY line`
let postgres: PostgresPart
let databases = 0

beforeEach(({ skip }) => skip(missing !== undefined, missing))
beforeAll(async () => {
  if (missing === undefined) postgres = await PostgresPart.start(folder)
})
afterAll(async () => {
  if (missing === undefined) await postgres.stop()
})

async function emptyDatabase(): Promise<string> {
  databases += 1
  return await postgres.createDatabase(`upgrade-${databases}`)
}

async function former(changes = ''): Promise<{ readonly url: string; readonly store: ObjectStore }> {
  const [url, store] = [await emptyDatabase(), new ObjectStore()]
  await postgres.query(`${formerStatements('postgres')} ${changes}`, url)
  await createFormerAccounts(store)
  return { url, store }
}

async function newShape(): Promise<readonly Record<string, unknown>[]> {
  const url = await emptyDatabase()
  await (await DashboardWorld.open({ folder: temporaryFolder(), database: { url } }))[Symbol.asyncDispose]()
  return await postgres.query(SHAPE, url)
}

test.each([
  ['the version before', ''],
  ['a version before that, without tables, columns and indexes of later ones', OLDER],
])('people of %s stay signed in, sign in as before, and keep their Accounts', async (_, changes) => {
  const { url, store } = await former(changes)
  await using world = await openWithGitHub({ folder: temporaryFolder(), database: { url }, store, secret })
  await expectPeopleStay(world)
  expect(await postgres.query(SHAPE, url)).toEqual(await newShape())
})

test('of three replicas that start at once on the database of an older version, one brings the tables up to date, and all live', async () => {
  const { url, store } = await former(OLDER)
  await postgres.query(
    `CREATE TABLE made (line text);
    CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO public.made SELECT command_tag || ' ' || object_identity FROM pg_event_trigger_ddl_commands() WHERE object_type IN ('table', 'table column');
    END $$;
    CREATE EVENT TRIGGER note ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE') EXECUTE FUNCTION note()`,
    url,
  )
  await using world = await DashboardWorld.prepare({ folder: temporaryFolder(), database: { url }, store, secret })
  await world.startReplicas(3)
  for (let replica = 0; replica < 3; replica += 1) await expectSessionsStay(world)
  await world.stop()
  await world.startReplicas(3)
  const made = await postgres.query('SELECT line FROM made ORDER BY line', url)
  expect(made.map(({ line }) => line)).toEqual([
    'ALTER TABLE public."headgateMember"',
    'ALTER TABLE public."headgateOutbox"',
    'ALTER TABLE public."headgateOutbox"',
    'ALTER TABLE public."twoFactor"',
    'CREATE TABLE public."headgateProof"',
    'CREATE TABLE public."headgateTold"',
    'CREATE TABLE public."headgateToldState"',
    'CREATE TABLE public."headgateVersion"',
    'CREATE TABLE public."rateLimit"',
  ])
})

test('a start whose connection dies in the middle of the change changes nothing, and the next one completes it', async () => {
  const { url, store } = await former(OLDER)
  const before = await postgres.query(SHAPE, url)
  await postgres.query(
    `
    CREATE FUNCTION die() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); END $$;
    CREATE EVENT TRIGGER die ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION die()`,
    url,
  )
  const options = { folder: temporaryFolder(), database: { url }, store, secret }
  await expect(DashboardWorld.open(options)).rejects.toThrow('DATABASE_URL: the database does not answer')
  expect(await postgres.query(SHAPE, url)).toEqual(before)
  await postgres.query('DROP EVENT TRIGGER die; DROP FUNCTION die', url)
  await using world = await DashboardWorld.open(options)
  await expectSessionsStay(world)
})

test('a database of a later version ends the start with both versions and what to do, and stays as it is', async () => {
  const { url, store } = await former(`UPDATE "headgateVersion" SET version = ${TABLES_VERSION + 1}; DROP TABLE "headgateProof"`)
  const before = await postgres.query(SHAPE, url)
  await expect(DashboardWorld.open({ folder: temporaryFolder(), database: { url }, store, secret })).rejects.toThrow(
    `DATABASE_URL: the database has version ${TABLES_VERSION + 1}, and this dashboard knows versions up to ${TABLES_VERSION}; install the version of`,
  )
  expect(await postgres.query(SHAPE, url)).toEqual(before)
})
