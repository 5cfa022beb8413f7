/** What the metrics count over the story of a person, and what is left of them without the database. */
import { expect, test } from 'vitest'
import { DashboardWorld, PASSWORD } from '../../test/support/dashboard-world.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'

const EMAIL = 'maya@fernwood.example'

test('sign-ups, sign-ins, mails and pending Accounts are counted, and no line names the person', async () => {
  await using world = await DashboardWorld.open({ folder: temporaryFolder() })
  await world.person(EMAIL)
  await world.browser().post('/sign-in', { email: EMAIL, password: PASSWORD })
  await world.browser().post('/sign-in', { email: EMAIL, password: 'a wrong quiet heron' })
  await fetch(`${world.url}/nowhere/${EMAIL}`, { method: 'PROPFIND' })
  const text = await world.dashboard.metrics.registry.metrics()
  for (const line of [
    'headgate_dashboard_sign_ups_total{step="posted"} 1',
    'headgate_dashboard_sign_ups_total{step="verified"} 1',
    'headgate_dashboard_sign_ins_total{by="password",outcome="signed-in"} 1',
    'headgate_dashboard_sign_ins_total{by="password",outcome="wrong"} 1',
    'headgate_dashboard_mails_total{outcome="sent"} 1',
    'headgate_dashboard_outbox_oldest_seconds 0',
    'headgate_dashboard_pending_accounts 0',
    'headgate_dashboard_database_up 1',
    'headgate_dashboard_request_seconds_count{method="other",route="none",status="403"} 1',
  ])
    expect(text.split('\n')).toContain(line)
  expect(text).not.toContain('maya')
})

test('a verified person without an Account is pending, and a waiting mail has an age', async () => {
  await using world = await DashboardWorld.open({
    folder: temporaryFolder(),
    transport: { send: () => Promise.reject(new Error('away')), close: () => undefined },
  })
  await world.browser().post('/sign-up', { email: EMAIL, password: PASSWORD })
  const { identity, metrics } = world.dashboard
  await identity.idle()
  const { internalAdapter } = await identity.auth.$context
  const found = await internalAdapter.findUserByEmail(EMAIL)
  const value = async (name: string): Promise<number> =>
    Number(new RegExp(`^headgate_dashboard_${name} (.+)$`, 'm').exec(await metrics.registry.metrics())?.[1])
  expect(await value('pending_accounts')).toBe(0) // unverified
  await internalAdapter.updateUser(found?.user.id ?? '', { emailVerified: true })
  world.clock.move(700_000)
  expect([await value('pending_accounts'), await value('outbox_mails')]).toEqual([1, 1])
  expect(await value('outbox_oldest_seconds')).toBeGreaterThanOrEqual(700)
})

test('without the database the metrics are still served, and say so', async () => {
  await using world = await DashboardWorld.open({ folder: temporaryFolder() })
  const { identity, metrics } = world.dashboard
  await identity.idle()
  const { database } = identity
  await database.db.destroy()
  const text = await metrics.registry.metrics()
  expect(text).toContain('headgate_dashboard_database_up 0')
  expect(text).toMatch(/^headgate_dashboard_outbox_mails Nan$/im)
})
