/**
 * Reports a change of an account to its owner. The mail is stored before the change, held back, and released after it, so that no end of the process
 * loses it. The library makes the change in statements of its own, so both cannot be one transaction. What a process left behind is settled by
 * looking: a state that differs from the one before the change means that the change was made. A mail may come twice, and never not at all.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { HeldMail } from '../mail/outbox.ts'
import type { MailName, MailParameters } from '../mail/templates/mails.ts'
import { Busy } from './busy.ts'
import { hashOf } from './credential.ts'
import type { HeldRow } from './database-outbox.ts'
import type { Identity } from './identity.ts'
import { personOf } from './sessions.ts'

/** The part of a person that a change changes. */
export type Part = 'password' | 'two-factor' | 'backup-codes' | 'email' | `provider ${string}`

export interface Notice<Name extends MailName> {
  readonly userId: string
  readonly part: Part
  readonly to: string
  readonly name: Name
  readonly parameters: MailParameters[Name]
}

/** Longer than a request takes: a mail that has been held for this time belongs to a process that has ended, ms. */
export const HELD_MS = 120_000

/** Parts whose change ends the other sessions of the person: a thief may have one. */
const ENDS_SESSIONS: ReadonlySet<Part> = new Set<Part>(['password', 'two-factor'])

const heldSchema = z.object({
  part: z.string().transform((part) => part as Part), // written by us
  before: z.string(),
})

/**
 * @param change tells by a throw that it may have been made or not; the sweep looks then
 * @param isMade whether the answer of `change` says that it was made
 */
export async function withNotice<Name extends MailName, T>(
  identity: Identity,
  notice: Notice<Name>,
  change: () => Promise<T>,
  isMade: (result: T) => boolean,
): Promise<T> {
  const { outboxRows } = identity
  const letter = await holdNotice(identity, notice)
  const dropIfBusy = async (error: unknown): Promise<never> => {
    if (error instanceof Busy) await outboxRows.drop(letter.id) // refused before anything was done
    throw error
  }
  const result = await change().catch(dropIfBusy)
  await endNotice(identity, letter, isMade(result))
  return result
}

/** Stores the mail before the change. @returns the mail, for `endNotice` after the change */
export async function holdNotice<Name extends MailName>(identity: Identity, notice: Notice<Name>): Promise<HeldMail> {
  await releaseMade(identity, notice.userId) // this change may undo an earlier one, whose traces would then be gone
  const held = { part: notice.part, before: await stateOf(identity, notice.userId, notice.part) }
  return await identity.mail.hold(notice, { userId: notice.userId, held: JSON.stringify(held) })
}

/** Sends the mail, or drops it. */
export async function endNotice({ mail, outboxRows }: Identity, letter: HeldMail, isMade: boolean): Promise<void> {
  await (isMade ? mail.release(letter) : outboxRows.drop(letter.id))
}

/** Releases or drops what ended processes have left, and ends the sessions that an interrupted change should have ended. */
export async function settleNotices(identity: Identity, limit: number): Promise<void> {
  const { internalAdapter } = await identity.auth.$context
  for (const row of await identity.outboxRows.held({ olderThanMs: HELD_MS, limit })) {
    const isMade = await isMadeSince(identity, row)
    if (isMade && ENDS_SESSIONS.has(heldOf(row).part)) await internalAdapter.deleteUserSessions(row.userId)
    await (isMade ? identity.mail.release(row) : identity.outboxRows.drop(row.id))
  }
}

/** Before the person is deleted, and the traces with the person. */
export async function endNotices(identity: Identity, userId: string): Promise<void> {
  await releaseMade(identity, userId)
  for (const { id } of await identity.outboxRows.held({ userId })) await identity.outboxRows.drop(id)
}

/** Releases the mails of the person whose changes were made. The others may be under way. */
async function releaseMade(identity: Identity, userId: string): Promise<void> {
  for (const row of await identity.outboxRows.held({ userId })) if (await isMadeSince(identity, row)) await identity.mail.release(row)
}

async function isMadeSince(identity: Identity, row: HeldRow): Promise<boolean> {
  const { part, before } = heldOf(row)
  return (await stateOf(identity, row.userId, part)) !== before
}

function heldOf({ held }: HeldRow): z.infer<typeof heldSchema> {
  return heldSchema.parse(JSON.parse(held))
}

/** A digest of the part as it is now: a hash of a password must not be stored a second time. */
async function stateOf(identity: Identity, userId: string, part: Part): Promise<string> {
  return createHash('sha256')
    .update((await valueOf(identity, userId, part)) ?? '')
    .digest('base64url')
}

async function valueOf(identity: Identity, userId: string, part: Part): Promise<string | undefined> {
  const { adapter, internalAdapter } = await identity.auth.$context
  if (part === 'password') return await hashOf(identity, userId)
  const user = await internalAdapter.findUserById(userId)
  if (part === 'email') return user?.email
  if (part === 'two-factor') return user && personOf(user).hasTwoFactor ? 'on' : undefined
  const factor = { model: 'twoFactor', where: [{ field: 'userId', value: userId }] }
  if (part === 'backup-codes') return (await adapter.findOne<{ backupCodes: string }>(factor))?.backupCodes
  const provider = part.slice('provider '.length)
  return (await internalAdapter.findAccounts(userId)).find(({ providerId }) => providerId === provider)?.accountId
}
