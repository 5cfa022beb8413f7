import { accounts } from '#api/resources.ts'
import { beforeAll, afterAll, describe, expect, test } from 'vitest'
import { DashboardWorld, PASSWORD, tokenOf } from '../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../test/support/temporary-folder.ts'

const folder = temporaryFolderOfFile()
let world: DashboardWorld
beforeAll(async () => void (world = await DashboardWorld.open({ folder })))
afterAll(() => world[Symbol.asyncDispose]())

// each test goes on where the one before ended
describe('a person with an address and a password', { shuffle: false }, () => {
  test('signs up, verifies in the same browser, and is signed in with an Account of the default plan', async () => {
    const browser = world.browser()
    const signUp = await browser.post('/sign-up', { email: 'Maya@Fernwood.example', password: PASSWORD })
    expect([signUp.status, signUp.location]).toEqual([303, '/check-your-mail'])
    expect((await browser.get('/check-your-mail')).text).toContain('maya@fernwood.example')
    const { link } = await world.mails.wait('maya@fernwood.example', 'verify')
    expect((await browser.get(link)).heading).toBe('Verify your email')
    expect(await world.store.list(accounts, '')).toEqual([]) // opening the link changes nothing
    const verified = await browser.post('/verify', { token: tokenOf(link) })
    expect([verified.status, verified.location]).toEqual([303, '/'])
    const [account] = await world.store.list(accounts, '')
    expect(account).toMatchObject({
      metadata: { name: expect.stringMatching(/^u-[0-9a-f]{20}$/) },
      spec: {
        owner: { email: 'maya@fernwood.example', emailVerification: 'Verified' },
        planRef: { name: 'default' },
        billing: 'Prepaid',
        state: 'Active',
      },
    })
    expect((await browser.get('/api/me')).json()).toMatchObject({
      person: { email: 'maya@fernwood.example', role: 'owner', hasPassword: true },
      account: { state: 'Active', name: account?.metadata.name, plan: 'default' },
    })
    expect((await browser.get('/')).text).toContain('The app')
  })

  test('signs out, and in again', async () => {
    const browser = await world.person('sam@fernwood.example')
    expect((await browser.call('POST', '/api/sign-out', {})).status).toBe(204)
    expect((await browser.get('/api/me')).status).toBe(401)
    expect((await browser.get('/settings')).location).toBe('/sign-in?next=%2Fsettings')
    const signIn = await browser.post('/sign-in', { email: 'sam@fernwood.example', password: PASSWORD, next: '/settings' })
    expect([signIn.status, signIn.location]).toEqual([303, '/settings'])
    expect((await browser.get('/api/me')).status).toBe(200)
  })

  test('sets a new password by a link that works once and ends all sessions', async () => {
    const browser = await world.person('ana@fernwood.example')
    const other = world.browser()
    await other.post('/reset', { email: 'ana@fernwood.example' })
    const { link } = await world.mails.wait('ana@fernwood.example', 'reset')
    expect((await other.get(link)).heading).toBe('Set a new password')
    const set = await other.post('/reset/new', { token: tokenOf(link), password: 'another quiet heron' })
    expect(set.location).toBe('/sign-in?reason=password-set')
    expect((await browser.get('/api/me')).status).toBe(401)
    expect((await other.post('/reset/new', { token: tokenOf(link), password: 'a third quiet heron' })).heading).toBe(
      'This link no longer works',
    )
    expect((await other.post('/sign-in', { email: 'ana@fernwood.example', password: PASSWORD })).status).toBe(403)
    expect((await other.post('/sign-in', { email: 'ana@fernwood.example', password: 'another quiet heron' })).status).toBe(303)
  })

  test('changes the address by a link that works in the own session alone, and the Account follows', async () => {
    const browser = await world.person('old@fernwood.example')
    expect((await browser.call('POST', '/api/email', { email: 'new@fernwood.example' })).status).toBe(202)
    const { link } = await world.mails.wait('new@fernwood.example', 'new-address')
    const stranger = await world.person('stranger@fernwood.example')
    expect((await world.browser().post('/verify', { token: tokenOf(link) })).status).toBe(422)
    expect((await stranger.post('/verify', { token: tokenOf(link) })).status).toBe(422)
    expect((await browser.post('/verify', { token: tokenOf(link) })).location).toBe('/settings')
    const { person, account } = (await browser.get('/api/me')).json()
    expect(person.email).toBe('new@fernwood.example')
    expect((await world.store.get(accounts, { namespace: '', name: account.name }))?.spec.owner?.email).toBe('new@fernwood.example')
    await world.mails.wait('old@fernwood.example', 'address-changed')
  })

  test('deletes the account: the Account is suspended and stays, and the person can no longer sign in', async () => {
    const browser = await world.person('gone@fernwood.example')
    const { account } = (await browser.get('/api/me')).json()
    expect((await browser.call('POST', '/api/account/delete', { email: 'other@fernwood.example' })).status).toBe(422)
    expect((await browser.call('POST', '/api/account/delete', { email: 'gone@fernwood.example' })).status).toBe(204)
    expect((await world.store.get(accounts, { namespace: '', name: account.name }))?.spec.state).toBe('Suspended')
    expect((await browser.get('/api/me')).status).toBe(401)
    expect((await browser.post('/sign-in', { email: 'gone@fernwood.example', password: PASSWORD })).status).toBe(403)
  })
})
