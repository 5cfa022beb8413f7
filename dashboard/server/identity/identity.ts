/** Opens identity: the database, the library behind its door, and what the verbs of this folder share. */
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Outbox } from '../mail/outbox.ts'
import type { LinkParameters } from '../mail/templates/link-mails.ts'
import { type Auth, type AuthSettings, createAuth, type IdentityMails } from './auth.ts'
import { type Database, type DatabasePlace, openDatabase } from './database.ts'
import { bringUpToDate } from './database-version.ts'
import { Door } from './door.ts'
import type { HashQueue } from './hash-queue.ts'
import { DatabaseMembers } from './database-members.ts'
import { DatabaseOutbox } from './database-outbox.ts'
import { DatabaseTold } from './database-told.ts'
import { Sealing } from './sealing.ts'
import { Sessions } from './sessions.ts'
import { ping } from './tables.ts'
import { Throttle } from './throttle.ts'

export interface IdentityDeps {
  readonly settings: AuthSettings
  readonly database: DatabasePlace
  readonly clock: Clock
  readonly log: Log
}

/** What the verbs of this folder need. */
export interface Identity {
  readonly settings: AuthSettings
  readonly door: Door
  readonly sessions: Sessions
  readonly throttle: Throttle
  readonly auth: Auth
  readonly database: Database
  readonly members: DatabaseMembers
  readonly outboxRows: DatabaseOutbox
  /** What the people of accounts were told by mail. */
  readonly told: DatabaseTold
  readonly hashes: HashQueue
  /** Seals the proof that a browser signed up. */
  readonly proofs: Sealing
  readonly mail: Outbox
  readonly clock: Clock
  /** Rejects while the database does not answer. */
  ping(): Promise<void>
  /** Resolves when the work behind the answers so far is done: their mails are in the outbox. */
  idle(): Promise<void>
  close(): Promise<void>
}

/**
 * Opens the database and brings its tables up to date.
 * @param createOutbox receives the rows of the outbox and the key that seals them
 */
export async function openIdentity(
  { settings, database: place, clock, log }: IdentityDeps,
  createOutbox: (rows: DatabaseOutbox, sealing: Sealing) => Outbox,
): Promise<Identity> {
  const database = openDatabase(place, (error) => log.warn({ error: error.message }, 'a connection to the database ended'))
  const outboxRows = new DatabaseOutbox(database.db, clock)
  const mail = createOutbox(outboxRows, new Sealing(settings.secret, 'outbox'))
  const { auth, migrate, idle, hashes } = createAuth({ settings, database, mails: identityMails(mail), clock, log })
  try {
    await bringUpToDate(database, migrate)
  } catch (error) {
    await database.close().catch(() => undefined) // its failure would hide this one
    throw error
  }
  return {
    settings,
    door: new Door(auth, settings.origin, clock),
    sessions: new Sessions(auth, clock),
    throttle: new Throttle(database.db, clock),
    auth,
    database,
    members: new DatabaseMembers(database.db, clock),
    outboxRows,
    told: new DatabaseTold(database.db, clock),
    hashes,
    proofs: new Sealing(settings.secret, 'sign-up'),
    mail,
    clock,
    ping: () => ping(database.db),
    idle,
    close: async () => {
      await idle()
      await database.close()
    },
  }
}

function identityMails(mail: Outbox): IdentityMails {
  const link = (path: string, token: string): LinkParameters => ({ path: `${path}?token=${encodeURIComponent(token)}` })
  return {
    verify: (to, token) => mail.queue(to, 'verify', link('/verify', token)),
    known: (to) => mail.queue(to, 'known-address', {}),
    reset: (to, token) => mail.queue(to, 'reset', link('/reset/new', token)),
    newEmail: (to, token) => mail.queue(to, 'new-address', link('/verify', token)),
  }
}
