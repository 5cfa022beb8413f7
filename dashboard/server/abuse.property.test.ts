/** A thousand sign-ups and sign-ins at once, from a thousand sources. */
import { expect, test } from 'vitest'
import { atOnce } from '../../test/support/at-once.ts'
import { DashboardWorld, PASSWORD } from '../../test/support/dashboard-world.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'

const REQUESTS = 1_000
/** Growth of the process with two hashes of 19 MiB, a thousand open requests, and the test's own clients. */
const MAX_BYTES = 500 * 1024 * 1024

test('a thousand at once are each answered, the queue stays bounded, other pages come meanwhile, and all works afterwards', async () => {
  await using world = await DashboardWorld.open({ folder: temporaryFolder(), hasRealHashes: true })
  const browser = await world.person('maya@fernwood.example')
  const { hashes } = world.dashboard.identity
  let [mostWaiting, mostBytes, isOver] = [0, 0, false]
  const before = process.memoryUsage.rss()
  const watched = (async () => {
    let pages = 0
    while (!isOver) {
      mostWaiting = Math.max(mostWaiting, hashes.waiting)
      mostBytes = Math.max(mostBytes, process.memoryUsage.rss() - before)
      expect((await browser.get('/api/me')).status).toBe(200)
      pages += 1
    }
    return pages
  })()
  const storm = Array.from({ length: REQUESTS }, (_, n) => n)
  const statuses = await atOnce(
    storm,
    async (n) => {
      const fields = { email: n % 2 ? `person-${n}@fernwood.example` : 'maya@fernwood.example', password: PASSWORD }
      return (await world.browser().post(n % 2 ? '/sign-up' : '/sign-in', fields)).status
    },
    REQUESTS,
  ).finally(() => (isOver = true))
  const pages = await watched
  const counts = Object.groupBy(statuses, String)
  expect(Object.keys(counts).toSorted()).toEqual(['303', '403', '503'].filter((status) => counts[status]))
  expect(counts['303']?.length).toBeGreaterThanOrEqual(52)
  expect(mostWaiting).toBeLessThanOrEqual(50)
  expect(mostBytes).toBeLessThan(MAX_BYTES)
  expect(pages).toBeGreaterThan(1)
  world.clock.move(15 * 60_000)
  expect((await world.browser().post('/sign-in', { email: 'maya@fernwood.example', password: PASSWORD })).status).toBe(303)
})
