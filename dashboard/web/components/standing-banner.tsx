/** The page-wide banner that says why nothing can be changed now. */
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect } from 'react'
import { useMe } from '../queries.ts'
import { STANDING_ID, useStanding } from '../standing.ts'
import { clockTime } from '../times.ts'
import { Button } from './button.tsx'
import { useAction } from './use-action.ts'

export function StandingBanner(): ReactNode {
  const standing = useStanding()
  const { data, dataUpdatedAt, refetch } = useMe()
  const { isBusy, perform } = useAction('', () => refetch()) // not busy while the page tries by itself
  useCheckOnNetworkChange()
  const asOf = data === undefined ? '' : `You see what was loaded at ${clockTime(new Date(dataUpdatedAt))}. `
  const again = (
    <Button look="compact" isBusy={isBusy} onClick={() => perform()}>
      Try now
    </Button>
  )
  return (
    <div role="status" id={STANDING_ID}>
      {standing === 'offline' && (
        <Notice title="You are offline" text={`${asOf}Changes wait until you are back; your keys go on working.`} button={again} />
      )}
      {standing === 'unreachable' && (
        <Notice
          title="The dashboard does not answer"
          text={`${asOf}Changes wait until it is back; your keys go on working.`}
          button={again}
        />
      )}
      {standing === 'read-only' && (
        <Notice
          title="Read only for now"
          text="The cluster does not answer the dashboard. Keys, limits and revocations go on working as they are; changes are possible again once it answers."
        />
      )}
    </div>
  )
}

function Notice({ title, text, button }: { readonly title: string; readonly text: string; readonly button?: ReactNode }): ReactNode {
  return (
    <div className="banner warn">
      <div>
        <b>{title}</b>
        <p>{text}</p>
      </div>
      {button}
    </div>
  )
}

/** Reads again as soon as the browser loses its network or has it back, so that the banner follows at once. */
function useCheckOnNetworkChange(): void {
  const queries = useQueryClient()
  useEffect(() => {
    const check = (): void => void queries.invalidateQueries()
    addEventListener('online', check)
    addEventListener('offline', check)
    return () => {
      removeEventListener('online', check)
      removeEventListener('offline', check)
    }
  }, [queries])
}
