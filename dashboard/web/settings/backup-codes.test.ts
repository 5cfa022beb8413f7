import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, it } from 'vitest'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { BackupCodes } from './backup-codes.tsx'

it('backup codes are on the page, and in no live region', () => {
  const codes = ['7k2m-9xqp', 'b4tz-h3wc']
  const page = createElement(BackupCodes, { title: 'Codes', fact: '', codes, close: () => undefined })
  const html = renderToStaticMarkup(createElement(QueryClientProvider, { client: new QueryClient() }, page))
  const live = [...html.matchAll(/<(\w+)[^>]*(?:role="(?:status|alert)"|aria-live)[^>]*>(.*?)<\/\1>/g)]
  expect(live).toHaveLength(1)
  for (const code of codes) expect([html.includes(code), live[0]?.[0].includes(code)]).toEqual([true, false])
})
