/** Behind a proxy that ends TLS, all cookies belong to this host alone and travel encrypted. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manySources, send } from '../../test/support/dashboard-requests.ts'
import { DashboardWorld, PASSWORD, tokenOf, type Visit } from '../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../test/support/temporary-folder.ts'

const ORIGIN = 'https://dashboard.example.com'
const ATTRIBUTES =
  /^__Host-headgate\.(\w+)=[^;]*; (Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax|Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+; Secure)$/

const folder = temporaryFolderOfFile()
let world: DashboardWorld
beforeAll(async () => void (world = await DashboardWorld.open({ folder, publicOrigin: ORIGIN })))
afterAll(() => world[Symbol.asyncDispose]())

const cookies = new Map<string, string>()
const lines: string[] = []

async function post(path: string, fields: Readonly<Record<string, string>>): Promise<Visit> {
  const headers = { ...manySources, origin: ORIGIN, 'content-type': 'application/x-www-form-urlencoded', cookie: cookieOf() }
  const visit = await send(world, 'POST', path, { headers, body: new URLSearchParams(fields).toString() })
  for (const line of visit.headers.getSetCookie()) {
    lines.push(line)
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    cookies.set(name, value)
  }
  return visit
}

const cookieOf = (): string => [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')

// each test goes on where the one before ended
describe('on https', { shuffle: false }, () => {
  test('each cookie has the prefix __Host-, is Secure and hidden from scripts, and works', async () => {
    expect((await post('/sign-up', { email: 'tls@a.example', password: PASSWORD })).location).toBe('/check-your-mail')
    const { link } = await world.mails.wait('tls@a.example', 'verify')
    expect(link.startsWith(`${ORIGIN}/verify?token=`)).toBe(true)
    expect((await post('/verify', { token: tokenOf(link) })).location).toBe('/')
    const me = await send(world, 'GET', '/api/me', { headers: { cookie: cookieOf() } })
    expect(me.status).toBe(200)
    expect((await post('/sign-in', { email: 'tls@a.example', password: PASSWORD })).location).toBe('/')
    for (const line of lines) expect(line).toMatch(ATTRIBUTES)
    expect(new Set(lines.map((line) => ATTRIBUTES.exec(line)?.[1]))).toEqual(new Set(['sign_up', 'session_token']))
  })

  test('a cookie without the prefix, which a neighbour of the host could set, counts for nothing', async () => {
    const value = cookies.get('__Host-headgate.session_token') ?? ''
    for (const name of ['headgate.session_token', '__Secure-headgate.session_token', '__Secure-__Host-headgate.session_token'])
      expect((await send(world, 'GET', '/api/me', { headers: { cookie: `${name}=${value}` } })).status).toBe(401)
    const proof = lines.map((line) => /^__Host-headgate\.sign_up=([^;]+)/.exec(line)?.[1]).find((one) => one !== undefined) ?? ''
    const opens = async (name: string): Promise<boolean> =>
      (await send(world, 'GET', '/check-your-mail', { headers: { cookie: `${name}=${proof}` } })).status === 200
    expect([await opens('headgate.sign_up'), await opens('__Host-headgate.sign_up')]).toEqual([false, true])
  })

  test('browsers are told to stay on https, for this host alone', async () => {
    const { headers } = await send(world, 'GET', '/sign-in')
    expect(headers.get('strict-transport-security')).toBe('max-age=31536000')
  })

  test('the same host on http is a foreign origin', async () => {
    const headers = { ...manySources, origin: ORIGIN.replace('https', 'http'), 'content-type': 'application/x-www-form-urlencoded' }
    expect((await send(world, 'POST', '/sign-in', { headers, body: 'email=x&password=y' })).status).toBe(403)
  })

  test('the cookies are cleared at sign-out under the same names', async () => {
    const headers = { ...manySources, origin: ORIGIN, 'content-type': 'application/json', cookie: cookieOf() }
    const visit = await send(world, 'POST', '/api/sign-out', { headers, body: '{}' })
    expect(visit.headers.getSetCookie().some((line) => line.startsWith('__Host-headgate.session_token=; Max-Age=0; Path=/;'))).toBe(true)
    expect((await send(world, 'GET', '/api/me', { headers: { cookie: cookieOf() } })).status).toBe(401)
  })
})
