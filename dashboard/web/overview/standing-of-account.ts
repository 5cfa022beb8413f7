/** What the page says about an Account. Pure. */
import type { AccountView } from '../../server/page-data/people.ts'

export interface AccountStanding {
  /** Whether calls with the account's keys can be answered. */
  readonly isUsable: boolean
  readonly look: 'ok' | 'wait' | 'warn' | 'danger' | 'off'
  /** The word beside the dot. */
  readonly word: string
  /** What follows from the state, and the way on. '' where nothing needs to be said. */
  readonly consequence: string
}

export function standingOf(account: AccountView): AccountStanding {
  switch (account.state) {
    case 'Closed':
      return {
        ...{ isUsable: false, look: 'off', word: 'Closed' },
        consequence: 'Your administrator has closed this account. Its keys no longer work. Ask your administrator if you need a new one.',
      }
    case 'Unknown':
      return {
        ...{ isUsable: false, look: 'wait', word: 'Not known now' },
        consequence:
          'The cluster does not answer the dashboard, so the state of your account is not known here. Keys go on working. This page checks again every few seconds.',
      }
    case 'Suspended':
      return {
        ...{ isUsable: false, look: 'danger', word: 'Suspended' },
        consequence: 'Calls with its keys answer 401. Ask your administrator to resume it.',
      }
    case 'Active':
      if (account.isReady) return { isUsable: true, look: 'ok', word: 'Active', consequence: '' }
      return {
        ...{ isUsable: false, look: 'warn', word: 'Not ready' },
        consequence: `${sentence(account.message ?? account.reason ?? 'The account is being checked')} This page checks again every few seconds.`,
      }
  }
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}
