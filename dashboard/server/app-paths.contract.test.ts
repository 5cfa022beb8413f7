/** The pages of the app at their own addresses: a reload, a link from a mail and a bookmark open them. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DashboardWorld, type FormBrowser } from '../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../test/support/temporary-folder.ts'

const ROUTE = /<Route path="([^"]+)"/g
const source = readFileSync(join(import.meta.dirname, '../web/app.tsx'), 'utf8')
const paths = [...source.matchAll(ROUTE)].map(([, path = '']) => path.replace(':key', 'k-0123456789'))
const folder = join(temporaryFolderOfFile(), '.hidden')
let world: DashboardWorld
let maya: FormBrowser

beforeAll(async () => {
  mkdirSync(folder)
  world = await DashboardWorld.open({ folder })
  maya = await world.person('maya@fernwood.example')
})
afterAll(() => world[Symbol.asyncDispose]())

test('the app has these pages', () => {
  expect(paths).toEqual(['/', '/keys', '/keys/k-0123456789', '/usage', '/billing', '/billing/plan', '/settings'])
})

describe.each(paths)('%s', (path) => {
  test('opens for a person who is signed in, also with a query', async () => {
    for (const query of ['', '?new']) {
      const { status, text } = await maya.get(`${path}${query}`)
      expect([status, text]).toEqual([200, expect.stringContaining('<title>The app</title>')])
    }
  })

  test('leads everybody else to the sign-in, and from there to itself', async () => {
    const { status, location } = await world.browser().get(path)
    const { pathname, searchParams } = new URL(location, world.origin)
    expect([status, pathname]).toEqual([303, '/sign-in'])
    expect(searchParams.get('next') ?? '/').toBe(path)
  })
})

test('other addresses have no page', async () => {
  for (const path of ['/keys/k-1/more', '/billing/other', '/nothing']) expect((await maya.get(path)).status).toBe(404)
})

test('the icon is there, wherever the program is installed', async () => {
  const { status, headers } = await maya.get('/icon.svg')
  expect([status, headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
})
