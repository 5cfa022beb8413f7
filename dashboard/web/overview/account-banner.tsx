/** Says that calls with the account's keys are not answered, or that this is not known, with the name for the administrator. */
import type { ReactNode } from 'react'
import type { AccountView } from '../../server/page-data/people.ts'
import { standingOf } from './standing-of-account.ts'

export function AccountBanner({ account }: { readonly account: AccountView }): ReactNode {
  const { isUsable, look, word, consequence } = standingOf(account)
  if (isUsable) return null
  const isStopped = account.state === 'Suspended' || account.state === 'Closed'
  const title = account.state === 'Unknown' ? 'The state of your account is not known now' : `Your account is ${word.toLowerCase()}`
  return (
    <div className={`banner ${isStopped ? 'danger' : look === 'wait' ? '' : 'warn'}`} role="status">
      <div>
        <b>{title}</b>
        <p>
          {consequence}{' '}
          {'name' in account && (
            <>
              The account is <code>{account.name}</code>.
            </>
          )}
        </p>
      </div>
    </div>
  )
}
