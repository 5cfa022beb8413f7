import { expect, test } from 'vitest'
import { ENGINE_ROUTES, ENGINES, LISTED_ROUTES } from '#contract/values/call-routes.ts'
import { read } from '../support/documents.ts'
import { tableOf } from '../support/markdown-page.ts'

test('docs/model-servers.md names the routes of every engine, and no others', () => {
  const page = read('docs/model-servers.md')
  const stated = ENGINES.map((engine) => ({
    '`engine`': `\`${engine}\``,
    ...Object.fromEntries(LISTED_ROUTES.map((route) => [`\`${route}\``, ENGINE_ROUTES[engine].includes(route) ? 'yes' : '–'])),
  }))
  expect(tableOf(page, '`engine`').rows).toEqual(stated)
})
