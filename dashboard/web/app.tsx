/** The app: its pages by path, within the frame. */
import { QueryClientProvider } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { createAPI } from './api.ts'
import { BillingPage } from './billing/billing.tsx'
import { PlanPage } from './billing/plan.tsx'
import { ErrorBoundary } from './components/error-boundary.tsx'
import { Frame } from './components/frame.tsx'
import { createDrafts } from './drafts.ts'
import { KeyPage } from './keys/key-page.tsx'
import { KeysPage } from './keys/keys-page.tsx'
import { NotFound } from './not-found.tsx'
import { Overview } from './overview/overview.tsx'
import { createQueries } from './queries.ts'
import { Settings } from './settings/settings.tsx'
import { type Surroundings, SurroundingsContext } from './surroundings.ts'
import { UsagePage } from './usage/usage.tsx'

export function App(): ReactNode {
  const [queries] = useState(createQueries)
  const [surroundings] = useState(ofBrowser)
  return (
    <SurroundingsContext value={surroundings}>
      <QueryClientProvider client={queries}>
        <Frame>
          <Pages />
        </Frame>
      </QueryClientProvider>
    </SurroundingsContext>
  )
}

function Pages(): ReactNode {
  const [here] = useLocation()
  return (
    <ErrorBoundary key={here}>
      <Switch>
        <Route path="/" component={Overview} />
        <Route path="/keys" component={KeysPage} />
        <Route path="/keys/:key">{({ key }) => <KeyPage id={key} />}</Route>
        <Route path="/usage" component={UsagePage} />
        <Route path="/billing" component={BillingPage} />
        <Route path="/billing/plan" component={PlanPage} />
        <Route path="/settings" component={Settings} />
        <Route component={NotFound} />
      </Switch>
    </ErrorBoundary>
  )
}

function ofBrowser(): Surroundings {
  const here = (): string => location.pathname + location.search
  const leave = (path: string): void => location.assign(path)
  return { api: createAPI({ fetch: (path, init) => fetch(path, init), here, leave }), drafts: createDrafts(storage()), here, leave }
}

/** The storage of this tab. A browser that blocks storage throws at the first read. */
function storage(): Storage | undefined {
  try {
    return sessionStorage
  } catch {
    return undefined
  }
}
