/** Brings the Account of a person up to date after something about the person changed. */
import { messageOf } from '#platform/message-of.ts'
import { personOf } from '../identity/sessions.ts'
import type { RouteDeps } from './route.ts'

/** Creates or finds the Account, and writes the verified address into it. A failure is repaired by the next sign-in and by the sweep. */
export async function ensureAccount(
  { identity, accounts, log }: Pick<RouteDeps, 'identity' | 'accounts' | 'log'>,
  userId: string,
): Promise<void> {
  try {
    const user = await (await identity.auth.$context).internalAdapter.findUserById(userId)
    if (!user?.emailVerified) return
    await accounts.bringUpToDate(personOf(user))
  } catch (error) {
    log.warn({ person: userId, error: messageOf(error) }, 'the Account of a person could not be brought up to date; it is tried again')
  }
}
