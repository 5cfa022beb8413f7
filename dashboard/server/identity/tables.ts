/** Our tables beside those of better-auth, in the same database. Times are ms since 1970. */
import type { Kysely } from 'kysely'

/** Which Account belongs to whom, and what the person may do there. */
export interface MemberRow {
  readonly userId: string
  readonly accountName: string
  readonly role: string
  /** When the Account was first seen to exist; null: its creation is under way. */
  readonly confirmedAt: number | null
  /** Set while the deletion of the person is under way; null otherwise. */
  readonly deletingAt: number | null
  /** Set while the address of the person changes, until the Account has the new one; null otherwise. */
  readonly emailDueAt: number | null
  readonly createdAt: number
}

/** A mail to be sent. */
export interface OutboxRow {
  readonly id: string
  /** Address, template and parameters, sealed: they contain links that must not be usable from a backup of the database. */
  readonly sealed: string
  readonly attempts: number
  readonly dueAt: number
  readonly createdAt: number
  /** Set while the mail is held back until a change of this person is made; absent otherwise. */
  readonly heldUserId?: string | null
  readonly held?: string | null
}

/** How often something happened since `startedAt`. */
export interface ThrottleRow {
  readonly key: string
  readonly count: number
  readonly startedAt: number
  readonly lastAt: number
}

/** A TOTP code that was used. */
export interface UsedCodeRow {
  readonly userId: string
  readonly code: string
  readonly usedAt: number
}

/** When the owner of a session last proved who it is. */
export interface ProofRow {
  readonly sessionId: string
  readonly provenAt: number
}

/** What the people of an account were told, or need not be told: it is never mailed again. */
export interface ToldRow {
  readonly accountName: string
  /** A word for the kind of news, and names: `credit stripe-3c1f9b`. */
  readonly id: string
  readonly toldAt: number
}

/** What else is kept about an account for its mails. */
export interface ToldStateRow {
  readonly accountName: string
  /** Raised by each change, so that one of several replicas makes it. */
  readonly revision: number
  /** JSON: the state of the balance that people know, and the mails of the day. */
  readonly state: string
}

/** One row: see database-version.ts. */
export interface VersionRow {
  readonly id: number
  readonly version: number
}

export interface Tables {
  readonly headgateMember: MemberRow
  readonly headgateOutbox: OutboxRow
  readonly headgateThrottle: ThrottleRow
  readonly headgateUsedCode: UsedCodeRow
  readonly headgateProof: ProofRow
  readonly headgateTold: ToldRow
  readonly headgateToldState: ToldStateRow
  readonly headgateVersion: VersionRow
}

/** Creates the tables and columns that do not exist. */
export async function createTables(db: Kysely<Tables>): Promise<void> {
  const { schema } = db
  await schema
    .createTable('headgateMember')
    .ifNotExists()
    .addColumn('userId', 'text', (column) => column.primaryKey())
    .addColumn('accountName', 'text', (column) => column.notNull().unique()) // one member until accounts can be shared
    .addColumn('role', 'text', (column) => column.notNull())
    .addColumn('confirmedAt', 'bigint')
    .addColumn('deletingAt', 'bigint')
    .addColumn('emailDueAt', 'bigint')
    .addColumn('createdAt', 'bigint', (column) => column.notNull())
    .execute()
  await addColumn(db, 'headgateMember', 'emailDueAt', 'bigint')
  await schema
    .createTable('headgateOutbox')
    .ifNotExists()
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('sealed', 'text', (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('dueAt', 'bigint', (column) => column.notNull())
    .addColumn('createdAt', 'bigint', (column) => column.notNull())
    .addColumn('heldUserId', 'text')
    .addColumn('held', 'text')
    .execute()
  await addColumn(db, 'headgateOutbox', 'heldUserId', 'text')
  await addColumn(db, 'headgateOutbox', 'held', 'text')
  await schema.createIndex('headgateOutboxDue').ifNotExists().on('headgateOutbox').column('dueAt').execute()
  await schema
    .createTable('headgateThrottle')
    .ifNotExists()
    .addColumn('key', 'text', (column) => column.primaryKey())
    .addColumn('count', 'integer', (column) => column.notNull())
    .addColumn('startedAt', 'bigint', (column) => column.notNull())
    .addColumn('lastAt', 'bigint', (column) => column.notNull())
    .execute()
  await schema
    .createTable('headgateUsedCode')
    .ifNotExists()
    .addColumn('userId', 'text', (column) => column.notNull())
    .addColumn('code', 'text', (column) => column.notNull())
    .addColumn('usedAt', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('headgateUsedCodeKey', ['userId', 'code'])
    .execute()
  await schema
    .createTable('headgateProof')
    .ifNotExists()
    .addColumn('sessionId', 'text', (column) => column.primaryKey())
    .addColumn('provenAt', 'bigint', (column) => column.notNull())
    .execute()
  await createToldTables(db)
}

async function createToldTables({ schema }: Kysely<Tables>): Promise<void> {
  await schema
    .createTable('headgateTold')
    .ifNotExists()
    .addColumn('accountName', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('toldAt', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('headgateToldKey', ['accountName', 'id'])
    .execute()
  await schema
    .createTable('headgateToldState')
    .ifNotExists()
    .addColumn('accountName', 'text', (column) => column.primaryKey())
    .addColumn('revision', 'integer', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .execute()
}

/** Adds a column that the first databases did not have. */
async function addColumn<T extends keyof Tables>(
  db: Kysely<Tables>,
  table: T,
  name: keyof Tables[T] & string,
  type: 'bigint' | 'text',
): Promise<void> {
  const found = (await db.introspection.getTables()).find((one) => one.name === table)
  if (found?.columns.some((column) => column.name === name)) return
  await db.schema.alterTable(table).addColumn(name, type).execute()
}

/** Fails if the database does not answer. Reads the file, since a constant alone would come out of a lost one, too. */
export async function ping(db: Kysely<Tables>): Promise<void> {
  await db.selectFrom('headgateMember').select('userId').limit(1).execute()
}
