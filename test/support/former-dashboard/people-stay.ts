/** What the people of a former database are promised after an upgrade. */
import { accounts } from '#api/resources.ts'
import { expect } from 'vitest'
import { WITH_BACKUP_CODE } from '../../../dashboard/server/pages/two-factor.ts'
import { signInThrough } from '../dashboard-requests.ts'
import type { DashboardWorld, FormBrowser } from '../dashboard-world.ts'
import { totpCode } from '../totp.ts'
import { formerPeople } from './former-dashboard.ts'

const { maya, noor, sam, kim, password, waitingMailTo } = formerPeople()
const NEXT_PASSWORD = 'another quiet heron'

/** A browser that was signed in before the upgrade. */
export function browserOf(world: DashboardWorld, { cookie }: { readonly cookie: string }): FormBrowser {
  const browser = world.browser()
  browser.cookies.set('headgate.session_token', cookie)
  return browser
}

export async function expectSessionsStay(world: DashboardWorld): Promise<void> {
  for (const { email, cookie, accountName } of [maya, noor, sam]) {
    const me = await browserOf(world, { cookie }).get('/api/me')
    expect([email, me.status]).toEqual([email, 200])
    expect(me.json()).toMatchObject({ person: { email }, account: { state: 'Active', name: accountName } })
  }
}

/** Sessions, ways to sign in, links, mails and Accounts. It uses them up, so it holds once. */
export async function expectPeopleStay(world: DashboardWorld): Promise<void> {
  await expectSessionsStay(world)
  expect((await browserOf(world, maya).get('/api/me')).json().person.name).toBe(maya.name)
  await world.mails.wait(waitingMailTo, 'known-address')
  await expectTwoFactorStays(world)
  expect((await signInThrough(world.browser(), 'github', { email: sam.email })).location).toBe('/')
  await expectPasswordsStay(world)
  await world.person(kim.email) // never had an Account, and signs up again
  expect((await world.store.list(accounts, '')).length).toBe(4)
}

async function expectTwoFactorStays(world: DashboardWorld): Promise<void> {
  const signedIn = async (fields: Readonly<Record<string, string>>): Promise<number> => {
    const browser = world.browser()
    expect((await browser.post('/sign-in', { email: noor.email, password })).location).toBe('/two-factor')
    return (await browser.post('/two-factor', fields)).status
  }
  const [usedCode = '', unusedCode = ''] = noor.backupCodes
  expect(await signedIn({ code: totpCode(noor.appSecret, Date.now()) })).toBe(303)
  expect(await signedIn({ code: usedCode, with: WITH_BACKUP_CODE })).toBe(403)
  expect(await signedIn({ code: unusedCode, with: WITH_BACKUP_CODE })).toBe(303)
}

async function expectPasswordsStay(world: DashboardWorld): Promise<void> {
  const signIn = async (given: string): Promise<number> =>
    (await world.browser().post('/sign-in', { email: maya.email, password: given })).status
  expect([await signIn('a wrong quiet heron'), await signIn(password)]).toEqual([403, 303])
  const reset = await world.browser().post('/reset/new', { token: maya.resetToken, password: NEXT_PASSWORD })
  expect(reset.location).toBe('/sign-in?reason=password-set')
  expect([await signIn(password), await signIn(NEXT_PASSWORD)]).toEqual([403, 303])
}
