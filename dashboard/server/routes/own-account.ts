/** The Account of the signed-in person, for routes that cannot do without one. */
import type { Account } from '#api/account.ts'
import { KubeError } from '#kube/port.ts'
import { Refused } from '../http/refused.ts'
import type { Session } from '../identity/sessions.ts'
import type { RouteDeps } from './route.ts'

/** @throws Refused for an account that the administrator has deleted @throws KubeError while the API server does not answer */
export async function ownAccount({ accounts }: Pick<RouteDeps, 'accounts'>, { person }: Session): Promise<Account> {
  const found = await accounts.of(person)
  if (found.state === 'Found') return found.account
  if (found.state === 'Closed') throw new Refused('conflict', 'Your account was closed. Ask your administrator.')
  throw new KubeError('Unreachable', 0, 'the Account could not be read')
}
