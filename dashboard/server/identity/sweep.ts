/** Repairs what a crash or an outage left half-done, and deletes what has served its purpose. */
import { isKubeError, KubeError } from '#kube/port.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import type { Accounts } from '../accounts/accounts.ts'
import type { Member } from '../accounts/members.ts'
import type { Identity } from './identity.ts'
import { settleNotices } from './notices.ts'
import { deletePerson } from './person.ts'
import { personOf } from './sessions.ts'

/** An unverified person owns nothing, and is deleted after this time, ms. */
const UNVERIFIED_MS = 7 * 86_400_000
const THROTTLE_MS = 2 * 86_400_000
const BATCH = 100

/** Ends early when `signal` aborts, and while the API server does not answer: each further call would only wait for it. */
export async function sweepPeople(identity: Identity, accounts: Accounts, log: Log, signal?: AbortSignal): Promise<void> {
  await deleteUnverified(identity)
  await settleNotices(identity, BATCH)
  await identity.throttle.sweep(THROTTLE_MS)
  const without = (await identity.members.without(BATCH)).map(
    (userId) => [userId, () => finishAccount(identity, accounts, userId)] as const,
  )
  const unfinished = (await identity.members.unfinished(BATCH)).map(
    (member) => [member.userId, () => finishMember(identity, accounts, member)] as const,
  )
  for (const [person, finish] of [...without, ...unfinished]) {
    if (signal?.aborted) return
    try {
      await finish()
    } catch (error) {
      log.warn({ person, error: messageOf(error) }, 'the sweep could not finish a person; it is tried again')
      if (isKubeError(error, 'Unreachable', 'TooManyRequests')) return
    }
  }
}

async function finishMember(identity: Identity, accounts: Accounts, { userId, accountName, isDeleting }: Member): Promise<void> {
  await (isDeleting ? finishDeletion(identity, accounts, userId, accountName) : finishAccount(identity, accounts, userId))
}

/** The deletion asks again whether each is unverified: a person may verify the address since the list was read. */
async function deleteUnverified({ auth, clock }: Identity): Promise<void> {
  const { adapter } = await auth.$context
  const old = await adapter.findMany<{ id: string }>({
    model: 'user',
    where: [
      { field: 'emailVerified', value: false },
      { field: 'createdAt', operator: 'lt', value: new Date(clock.now() - UNVERIFIED_MS) },
    ],
    limit: BATCH,
  })
  if (old.length === 0) return
  await adapter.deleteMany({
    model: 'user',
    where: [
      { field: 'id', operator: 'in', value: old.map(({ id }) => id) },
      { field: 'emailVerified', value: false },
    ],
  })
}

async function finishDeletion(identity: Identity, accounts: Accounts, userId: string, accountName: string): Promise<void> {
  await accounts.suspend(accountName)
  await deletePerson(identity, userId)
  await identity.members.remove(userId)
}

async function finishAccount(identity: Identity, accounts: Accounts, userId: string): Promise<void> {
  const user = await (await identity.auth.$context).internalAdapter.findUserById(userId)
  if (user === null) return await identity.members.remove(userId)
  if (!user.emailVerified) return
  const { state } = await accounts.bringUpToDate(personOf(user))
  if (state === 'Unreachable') throw new KubeError('Unreachable', 0, 'the API server does not answer')
}
