/** The page for paths that lead nowhere. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { Page } from './components/page.tsx'

export function NotFound(): ReactNode {
  return (
    <Page name="Not found" heading="There is nothing here" lead="The page does not exist, or belongs to another account." isNarrow>
      <div className="actions">
        <Link className="button" href="/">
          Go to Overview
        </Link>
      </div>
    </Page>
  )
}
