/** The banner that says that the balance stops all keys, on Billing and on Overview. */
import type { ReactNode } from 'react'
import type { Billing } from '../../server/page-data/billing.ts'
import { moneyIn } from '../micros.ts'
import { usedUpWords } from './balance.ts'

/** @param children a button, where the page has none to top up */
export function UsedUpBanner({ billing, children }: { readonly billing: Billing; readonly children?: ReactNode }): ReactNode {
  const words = usedUpWords(billing, moneyIn(billing.currency))
  if (words === undefined) return null
  return (
    <div className="banner danger" role="alert">
      <div>
        <b>{words.title}</b>
        <p>{words.text}</p>
      </div>
      {children}
    </div>
  )
}
