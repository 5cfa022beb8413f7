/** Catches an error of a page's own code: the rest of the app stays usable. */
import { Component, type ReactNode } from 'react'
import { Page } from './page.tsx'

export class ErrorBoundary extends Component<{ readonly children: ReactNode }, { readonly hasFailed: boolean }> {
  override state = { hasFailed: false }

  static getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true }
  }

  override render(): ReactNode {
    if (!this.state.hasFailed) return this.props.children
    return (
      <Page
        name="Something went wrong"
        heading="Something went wrong on this page"
        lead="Your keys go on working: the API does not depend on this page."
        isNarrow
      >
        <div className="actions" role="alert">
          <button className="button primary" type="button" onClick={() => location.reload()}>
            Try again
          </button>
          <a className="button" href="/">
            Go to Overview
          </a>
        </div>
      </Page>
    )
  }
}
