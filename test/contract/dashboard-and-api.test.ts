/** An account of the dashboard is for people alone: nothing of a signed-in person is a key of the API. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { chooseAtProvider, cookieHeader, openWithGitHub, signInThrough, startAtProvider } from '../support/dashboard-requests.ts'
import { type DashboardWorld, PASSWORD, tokenOf } from '../support/dashboard-world.ts'
import { issuedKey, recordText, writer } from '../support/records.ts'
import { runningGateway } from '../support/running-gateway.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { waitFor } from '../support/wait-for.ts'

const { credential, record } = issuedKey('a')

const folder = temporaryFolderOfFile()
let world: DashboardWorld
let api: Awaited<ReturnType<typeof runningGateway>>
beforeAll(async () => {
  world = await openWithGitHub({ folder })
  const store = new MemoryProjection()
  await store.rebuild(writer(), 'e1', 1, [{ kind: 'key', op: 'put', id: 'a', text: recordText(record) }])
  api = await runningGateway(store)
  await api.gateway.start()
})
afterAll(async () => {
  await api.stop()
  await world[Symbol.asyncDispose]()
})

async function call(headers: Readonly<Record<string, string>>): Promise<number> {
  const { status } = await fetch(`${api.url}/v1/models`, { headers })
  return status
}

test('a session, a password, a link and an answer of a provider open no call of the API', async () => {
  await waitFor('a call that is answered', async () => (await call({ authorization: `Bearer ${credential}` })) === 200)
  const owner = await world.person('api@a.example')
  await owner.post('/reset', { email: 'api@a.example' })
  const reset = await world.mails.wait('api@a.example', 'reset')
  const hub = world.browser()
  const code = new URL(await chooseAtProvider(await startAtProvider(hub, 'github'), { email: 'hub@a.example' })).searchParams.get('code')
  await signInThrough(hub, 'github', { email: 'hub@a.example' })
  const session = decodeURIComponent(owner.cookies.get('headgate.session_token') ?? '')
  const values = [session, session.split('.')[0] ?? '', PASSWORD, tokenOf(reset.link), code ?? '']
  for (const value of values) {
    expect(value.length).toBeGreaterThan(10)
    expect(await call({ authorization: `Bearer ${value}` })).toBe(401)
    expect(await call({ 'x-api-key': value })).toBe(401)
  }
  expect(await call({ authorization: `Basic ${btoa(`api@a.example:${PASSWORD}`)}` })).toBe(401)
  for (const browser of [owner, hub]) expect(await call({ cookie: cookieHeader(browser) })).toBe(401)
})

test('a key of the API opens nothing of the dashboard', async () => {
  for (const headers of [
    { authorization: `Bearer ${credential}` },
    { 'x-api-key': credential },
    { cookie: `headgate.session_token=${credential}` },
  ])
    expect((await fetch(`${world.url}/api/me`, { headers })).status).toBe(401)
})
