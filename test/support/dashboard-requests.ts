/** What tests of the dashboard do beyond a browser: requests with any header, sign-ins through providers, two-factor. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { createStubGitHub } from '../../examples/stub-identity/github.ts'
import { DashboardWorld, type DashboardWorldOptions, type FormBrowser, Visit } from './dashboard-world.ts'
import { listening } from './listening.ts'
import { totpCode } from './totp.ts'

const STUB_CLIENT = { id: 'headgate', secret: 'secret of the stub' }

/** A world whose people can sign in through a stand-in for GitHub. The stand-in ends with the world. */
export async function openWithGitHub(options: DashboardWorldOptions): Promise<DashboardWorld> {
  return await DashboardWorld.open({
    ...options,
    providers: async (origin, closeWith) => {
      const { id, secret } = STUB_CLIENT
      const stub = createStubGitHub({ client: { id, secret, redirectURIs: [`${origin}/api/auth/callback/github`] } })
      const url = `http://127.0.0.1:${await listening(stub)}`
      closeWith(stub)
      return [{ kind: 'github', id: 'github', name: 'GitHub', clientId: id, clientSecret: secret, url, apiURL: url }]
    },
  })
}

export interface RawRequest {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends a request with exactly these headers, and follows no redirect. */
export async function send(world: DashboardWorld, method: string, path: string, { headers = {}, body }: RawRequest = {}): Promise<Visit> {
  const response = await fetch(`${world.url}${path}`, { method, headers, redirect: 'manual', ...(body === undefined ? {} : { body }) })
  return new Visit(response, await response.text())
}

/** The same for a request that names another host, which `fetch` does not allow. */
export async function sendToHost(
  world: DashboardWorld,
  host: string,
  path: string,
  { headers = {}, body = '' }: RawRequest,
): Promise<Visit> {
  const sent = request(`${world.url}${path}`, { method: 'POST', headers: { ...headers, host, 'content-length': Buffer.byteLength(body) } })
  sent.end(body)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const received = new Headers(
    Object.entries(answer.headers).flatMap(([name, value]) => [value ?? ''].flat().map((one) => [name, one] as [string, string])),
  )
  return new Visit({ status: answer.statusCode ?? 0, headers: received }, await text(answer))
}

let addresses = 0

/** An address that no other request of this process has. */
export function anyAddress(): string {
  addresses += 1
  return `203.${addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`
}

/** Headers with another client address at each request: limits per source never apply. */
export const manySources: Readonly<Record<string, string>> = {
  get 'x-forwarded-for'(): string {
    return anyAddress()
  },
}

/** The browser's cookies as a header. */
export function cookieHeader({ cookies }: FormBrowser): string {
  return [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
}

/** Presses `Continue with …`. @returns where the page sends the browser */
export async function startAtProvider(browser: FormBrowser, provider: string, fields: Readonly<Record<string, string>> = {}): Promise<URL> {
  const visit = await browser.post(`/sign-in/${provider}`, fields)
  const [, url = ''] = /http-equiv="refresh" content="0;url=([^"]+)"/.exec(visit.text) ?? []
  if (url === '') throw new Error(`the answer ${visit.status} leads to no provider: ${visit.heading}`)
  return new URL(url.replaceAll('&amp;', '&'))
}

/** Chooses a person at a stand-in provider. @returns the address at the dashboard to which the provider sends the browser */
export async function chooseAtProvider(url: URL, person: { readonly email: string; readonly isVerified?: boolean }): Promise<string> {
  const body = new URLSearchParams({ email: person.email, ...(person.isVerified === false ? {} : { verified: 'yes' }) })
  const { headers } = await fetch(url, { method: 'POST', body, redirect: 'manual' })
  return headers.get('location') ?? ''
}

/** Signs in through a stand-in provider. @returns the answer of the callback */
export async function signInThrough(
  browser: FormBrowser,
  provider: string,
  person: { readonly email: string; readonly isVerified?: boolean },
): Promise<Visit> {
  return await browser.get(await chooseAtProvider(await startAtProvider(browser, provider), person))
}

export interface Authenticator {
  readonly secret: string
  readonly backupCodes: readonly string[]
  /** The code that turned two-factor on. */
  readonly usedCode: string
  /** A code that was not used yet. It is taken for half a minute at least. */
  readonly freshCode: string
  /** A code that is not a code of now. */
  readonly wrongCode: string
}

const STEP_MS = 30_000
/** Time for the request that turns two-factor on, ms. */
const REQUEST_MS = 8_000

/** Turns two-factor on by the code of the period before, so that the code of the period is left for a test. The library takes both. */
export async function turnOnTwoFactor(browser: FormBrowser): Promise<Authenticator> {
  const { secret, backupCodes } = (await browser.call('POST', '/api/two-factor/start', {})).json()
  const at = Date.now() + REQUEST_MS
  const [usedCode, freshCode] = [totpCode(secret, at - STEP_MS), totpCode(secret, at)]
  const confirmed = await browser.call('POST', '/api/two-factor/confirm', { code: usedCode })
  if (confirmed.status !== 204) throw new Error(`two-factor was not turned on: ${confirmed.status} ${confirmed.text}`)
  const wrongCode = String((Number(freshCode) + 500_000) % 1_000_000).padStart(6, '0')
  return { secret, backupCodes, usedCode, freshCode, wrongCode }
}
