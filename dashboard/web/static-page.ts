/** A page as a browser gets it before any script has run, with what the server would have answered. For tests. */
import { type QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createElement, type ReactNode } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { Router } from 'wouter'
import { createAPI } from './api.ts'
import { createDrafts } from './drafts.ts'
import { createQueries } from './queries.ts'
import { SurroundingsContext } from './surroundings.ts'

export interface StaticPage {
  /** Path with its query. */
  readonly path?: string
  /** Data by the key of its query. */
  readonly data: ReadonlyArray<readonly [key: readonly string[], value: unknown]>
}

/** The HTML of a component. */
export function htmlOf(content: ReactNode, { path = '/', data }: StaticPage): string {
  const queries = createQueries()
  for (const [key, value] of data) queries.setQueryData(key, value)
  const [ssrPath, ssrSearch = ''] = path.split('?')
  const here = (): string => path
  const leave = (): void => undefined
  const api = createAPI({ fetch: () => new Promise(() => undefined), here, leave })
  const html = renderToStaticMarkup(
    createElement(
      SurroundingsContext,
      { value: { api, drafts: createDrafts(undefined), here, leave } },
      createElement(WithQueries, { queries }, createElement(Router, { ssrPath: ssrPath ?? '/', ssrSearch, children: content })),
    ),
  )
  queries.clear()
  return html
}

/** The words of HTML, without its elements. */
export function wordsOf(html: string): string {
  return html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&#x27;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll(/\s+/g, ' ')
}

function WithQueries({ queries, children }: { readonly queries: QueryClient; readonly children?: ReactNode }): ReactNode {
  return createElement(QueryClientProvider, { client: queries }, children)
}
