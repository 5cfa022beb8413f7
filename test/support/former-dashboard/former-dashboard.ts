/** Reads the databases of this folder: their statements, and what their people have. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { accounts } from '#api/resources.ts'
import { newAccount } from '../../../dashboard/server/accounts/accounts.ts'
import type { ObjectStore } from '../../../standalone/object-store.ts'

export const FORMER_VERSION = 1
export type DatabaseType = 'sqlite' | 'postgres'

export interface FormerPerson {
  readonly email: string
  readonly accountName: string
  /** Value of the session's cookie; empty for a person who was signed out. */
  readonly cookie: string
}

export interface FormerPeople {
  /** `DASHBOARD_SECRET` of that time. */
  readonly secret: string
  /** Of all people who have one. */
  readonly password: string
  /** Signed in, with a link to a new password that waits. */
  readonly maya: FormerPerson & { readonly name: string; readonly resetToken: string }
  /** With two-factor; the first of the backup codes was used. */
  readonly noor: FormerPerson & { readonly appSecret: string; readonly backupCodes: readonly string[] }
  /** Signs in through GitHub alone. */
  readonly sam: FormerPerson
  /** Signed up, and never verified the address. */
  readonly kim: { readonly email: string }
  /** To whom a mail waits. */
  readonly waitingMailTo: string
}

const WEEK_MS = 7 * 86_400_000
const LINK_MS = 10 * 60_000

export const pathOf = (end: string): string => join(import.meta.dirname, `version-${FORMER_VERSION}.${end}`)

export function formerPeople(): FormerPeople {
  return JSON.parse(readFileSync(pathOf('json'), 'utf8')) as FormerPeople // written by make.ts
}

/** The statements that make the database. Its sessions and links would have ended long ago: their times are those of a database of now. */
export function formerStatements(type: DatabaseType): string {
  const at = (ms: number): string => `'${new Date(Date.now() + ms).toISOString()}'`
  return `${readFileSync(pathOf(`${type}.sql`), 'utf8')}
    UPDATE "session" SET "createdAt" = ${at(0)}, "updatedAt" = ${at(0)}, "expiresAt" = ${at(WEEK_MS)};
    UPDATE "verification" SET "expiresAt" = ${at(LINK_MS)};
    UPDATE "user" SET "createdAt" = ${at(0)};`
}

/** Makes the database as a file. @param changes statements that run after it was made */
export function writeFormerFile(path: string, changes = ''): void {
  const file = new DatabaseSync(path)
  file.exec(`PRAGMA journal_mode = WAL; BEGIN; ${formerStatements('sqlite')} ${changes}; COMMIT`)
  file.close()
}

/** Makes the Accounts that the people have in the cluster. */
export async function createFormerAccounts(store: ObjectStore): Promise<void> {
  const { maya, noor, sam } = formerPeople()
  const settings = { defaultPlan: 'default', billing: 'Prepaid', keysNamespace: 'headgate-accounts' } as const
  for (const { email, accountName } of [maya, noor, sam])
    await store.create(accounts, newAccount({ id: accountName, name: '', email }, accountName, settings))
}
