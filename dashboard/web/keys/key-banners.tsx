/** What stands above the page of a key: its end with proof, a former value that still works, why calls are refused. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { KeyView } from '../../server/page-data/keys.ts'
import { ChangeButton } from '../components/button.tsx'
import { Problem } from '../components/problem.tsx'
import { useSurroundings } from '../surroundings.ts'
import { bannerOf } from './key-banner.ts'
import { KeyProof } from './key-proof.tsx'
import { formerValueEnd, proofOf } from './key-state.ts'
import { useKeyChange } from './use-key-change.ts'

export function KeyBanners({ view }: { readonly view: KeyView }): ReactNode {
  if (view.wanted === 'Revoked') return <RevokedBanner view={view} />
  return (
    <>
      <RefusalBanner view={view} />
      <FormerValue view={view} />
    </>
  )
}

function RevokedBanner({ view }: { readonly view: KeyView }): ReactNode {
  const isProven = view.state === 'Revoked'
  return (
    <div className={isProven ? 'banner ok' : 'banner'}>
      <div>
        {proofOf(view) === undefined ? (
          <p role="status">{isProven ? 'Revoked. Calls with it answer 401.' : 'Revoked. The gateways are told now.'}</p>
        ) : (
          <KeyProof view={view} />
        )}
      </div>
    </div>
  )
}

function RefusalBanner({ view }: { readonly view: KeyView }): ReactNode {
  const banner = bannerOf(view)
  return (
    <div role="status" hidden={banner === undefined}>
      {banner && (
        <div className={`banner ${banner.look}`}>
          <div>
            <b>{banner.title}</b>
            <p>{banner.text}</p>
          </div>
          {banner.link && (
            <Link className="button compact" href={banner.link.to}>
              {banner.link.words}
            </Link>
          )}
        </div>
      )}
    </div>
  )
}

function FormerValue({ view }: { readonly view: KeyView }): ReactNode {
  const { api } = useSurroundings()
  const { isBusy, error, perform } = useKeyChange(view.id, 'Ending the old value', () => api.endFormerValue(view.id))
  const end = formerValueEnd(view, new Date())
  if (end === undefined) return null
  return (
    <div>
      <div className="banner">
        <div>
          <b>The old value works until {end}</b>
          <p>Both values spend from the same budgets. Change your programs to the new one before.</p>
        </div>
        <ChangeButton look="compact" isBusy={isBusy} onClick={() => perform()}>
          End old value now
        </ChangeButton>
      </div>
      <Problem error={error} />
    </div>
  )
}
