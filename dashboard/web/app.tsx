/** The app: its pages by path, within the frame. */
import { QueryClientProvider } from '@tanstack/react-query'
import { type ReactNode, Suspense, useEffect, useState } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { createAPI } from './api.ts'
import { ErrorBoundary } from './components/error-boundary.tsx'
import { useFocusAfterNavigation } from './components/focus-after-navigation.ts'
import { Frame } from './components/frame.tsx'
import { Bar, Loading } from './components/loading.tsx'
import { createDrafts } from './drafts.ts'
import { BillingPage, KeyPage, KeysPage, loadPages, PlanPage, Settings, UsagePage } from './lazy-pages.ts'
import { NotFound } from './not-found.tsx'
import { Overview } from './overview/overview.tsx'
import { createQueries } from './queries.ts'
import { type Surroundings, SurroundingsContext } from './surroundings.ts'

export function App(): ReactNode {
  const [queries] = useState(createQueries)
  const [surroundings] = useState(ofBrowser)
  useEffect(() => void loadPages(), [])
  return (
    <SurroundingsContext value={surroundings}>
      <QueryClientProvider client={queries}>
        <Frame>
          <Suspense fallback={<LoadingPage />}>
            <Pages />
          </Suspense>
        </Frame>
      </QueryClientProvider>
    </SurroundingsContext>
  )
}

/** Within the boundary of pages that are being fetched: the focus moves once the page is there. */
function Pages(): ReactNode {
  const [here] = useLocation()
  useFocusAfterNavigation()
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

function LoadingPage(): ReactNode {
  return (
    <Loading>
      <Bar size="tall" />
      <Bar />
    </Loading>
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
