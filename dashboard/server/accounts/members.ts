/** People and the Accounts that they belong to. */
import type { Role } from '../page-data/people.ts'

export interface Member {
  readonly userId: string
  readonly accountName: string
  readonly role: Role
  /** The Account was seen to exist. A confirmed Account that is absent was deleted by the administrator, and is not created again. */
  readonly isConfirmed: boolean
  readonly isDeleting: boolean
  /** The address of the person has changed, or is about to: the Account may still have the former one. */
  readonly isEmailDue: boolean
}

export interface Members {
  of(userId: string): Promise<Member | undefined>
  /** @returns those of the Accounts that have a member */
  areTaken(accountNames: readonly string[]): Promise<ReadonlySet<string>>
  /**
   * Makes the person the owner of the Account.
   * @param accountName an Account that exists is confirmed at once: it is not created again if the administrator deletes it
   * @returns the membership that holds: another one if the person had one; undefined if the Account has another member, or the person is gone
   */
  add(userId: string, accountName: string, exists: boolean): Promise<Member | undefined>
  confirm(userId: string): Promise<void>
  beginDeletion(userId: string): Promise<void>
  /** Before the address of the person changes: whatever comes between, the Account gets it. */
  beginEmailChange(userId: string): Promise<void>
  endEmailChange(userId: string): Promise<void>
  remove(userId: string): Promise<void>
  /** People with a verified address who have no membership: a crash came between. */
  without(limit: number): Promise<readonly string[]>
  /** Members whose Account was never confirmed, or whose deletion or change of address has not ended. */
  unfinished(limit: number): Promise<readonly Member[]>
}

/** What somebody may do. Every route asks for one of them. */
export type Action =
  'account.read' | 'account.delete' | 'person.edit' | 'keys.read' | 'keys.edit' | 'usage.read' | 'billing.read' | 'billing.pay'

const MAY: Readonly<Record<Role, ReadonlySet<Action>>> = {
  owner: new Set<Action>([
    'account.read',
    'account.delete',
    'person.edit',
    'keys.read',
    'keys.edit',
    'usage.read',
    'billing.read',
    'billing.pay',
  ]),
}

/** Whether a role may do something. Every route asks. */
export function can(role: Role, action: Action): boolean {
  return MAY[role].has(action)
}
