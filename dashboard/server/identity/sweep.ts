/** Repairs what a crash or an outage left half-done, and deletes what has served its purpose. */
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import type { Accounts } from '../accounts/accounts.ts'
import type { Identity } from './identity.ts'
import { deletePerson } from './person.ts'
import { personOf } from './sessions.ts'

/** An unverified person owns nothing, and is deleted after this time, ms. */
const UNVERIFIED_MS = 7 * 86_400_000
const THROTTLE_MS = 2 * 86_400_000
const BATCH = 100

export async function sweepPeople(identity: Identity, accounts: Accounts, log: Log): Promise<void> {
  await deleteUnverified(identity)
  await identity.throttle.sweep(THROTTLE_MS)
  const finish = async (userId: string, task: () => Promise<void>): Promise<void> => {
    try {
      await task()
    } catch (error) {
      log.warn({ person: userId, error: messageOf(error) }, 'the sweep could not finish a person; it is tried again')
    }
  }
  for (const userId of await identity.members.without(BATCH)) await finish(userId, () => finishAccount(identity, accounts, userId))
  for (const { userId, accountName, isDeleting } of await identity.members.unfinished(BATCH))
    await finish(userId, () =>
      isDeleting ? finishDeletion(identity, accounts, userId, accountName) : finishAccount(identity, accounts, userId),
    )
}

async function deleteUnverified({ auth, clock }: Identity): Promise<void> {
  const { adapter, internalAdapter } = await auth.$context
  const old = await adapter.findMany<{ id: string }>({
    model: 'user',
    where: [
      { field: 'emailVerified', value: false },
      { field: 'createdAt', operator: 'lt', value: new Date(clock.now() - UNVERIFIED_MS) },
    ],
    limit: BATCH,
  })
  for (const { id } of old) await internalAdapter.deleteUser(id)
}

async function finishDeletion(identity: Identity, accounts: Accounts, userId: string, accountName: string): Promise<void> {
  await accounts.suspend(accountName)
  await deletePerson(identity, userId)
  await identity.members.remove(userId)
}

async function finishAccount(identity: Identity, accounts: Accounts, userId: string): Promise<void> {
  const user = await (await identity.auth.$context).internalAdapter.findUserById(userId)
  if (user === null) return await identity.members.remove(userId)
  if (user.emailVerified) await accounts.of(personOf(user))
}
