/** The providers that people may sign in through: GitHub, Google and any OpenID Connect issuer. All go through one generic client. */
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import type { GenericOAuthConfig, GenericOAuthUserInfo } from 'better-auth/plugins/generic-oauth'
import { z } from 'zod'
import type { Provider } from '../page-data/people.ts'

/** GitHub or a GitHub Enterprise server. */
export interface GitHubProvider extends Provider {
  readonly kind: 'github'
  readonly clientId: string
  readonly clientSecret: string
  /** `https://github.com` */
  readonly url: string
  /** `https://api.github.com` */
  readonly apiURL: string
}

/** An OpenID Connect issuer. */
export interface IssuerProvider extends Provider {
  readonly kind: 'oidc'
  readonly clientId: string
  readonly clientSecret: string
  /** The issuer without a slash at the end; its discovery document is below it. */
  readonly issuer: string
}

export type ProviderSettings = GitHubProvider | IssuerProvider

/** A profile as far as it counts: who it is at the provider, and the address that the provider has verified. */
export interface VerifiedProfile {
  readonly email: string
}

export interface ProviderDeps {
  /** Called before the library looks for a person with the address of the profile. */
  readonly onVerified: (profile: VerifiedProfile) => Promise<void>
  readonly log: Log
}

/** Longest name of a person, characters. */
export const MAX_NAME = 63
/** Bound of the requests to a provider, ms. */
const PROVIDER_MS = 10_000

export function oauthConfig(settings: ProviderSettings, deps: ProviderDeps): GenericOAuthConfig {
  return settings.kind === 'github' ? gitHub(settings, deps) : issuer(settings, deps)
}

function issuer({ id, issuer: url, clientId, clientSecret }: IssuerProvider, { onVerified }: ProviderDeps): GenericOAuthConfig {
  return {
    providerId: id,
    discoveryUrl: `${url}/.well-known/openid-configuration`,
    clientId,
    clientSecret,
    authentication: 'basic',
    pkce: true,
    scopes: ['openid', 'email', 'profile'],
    requireIdTokenVerification: true,
    requireEmailVerification: true,
    mapProfileToUser: async (profile) => {
      if (profile.email_verified === true && typeof profile.email === 'string') await onVerified({ email: profile.email })
      return { name: nameOf(profile.name) }
    },
  }
}

const gitHubUser = z.object({ id: z.int(), login: z.string(), name: z.string().nullish() })
const gitHubEmails = z.array(z.object({ email: z.email(), primary: z.boolean(), verified: z.boolean() }))

function gitHub(settings: GitHubProvider, { onVerified, log }: ProviderDeps): GenericOAuthConfig {
  const { id, url, clientId, clientSecret } = settings
  return {
    providerId: id,
    authorizationUrl: `${url}/login/oauth/authorize`,
    tokenUrl: `${url}/login/oauth/access_token`,
    clientId,
    clientSecret,
    pkce: true,
    scopes: ['read:user', 'user:email'],
    getUserInfo: async ({ accessToken }) => {
      if (accessToken === undefined) return null // GitHub refuses a code with status 200
      const person = await gitHubPerson(settings, accessToken).catch((error: unknown) => {
        log.warn({ provider: id, error: messageOf(error) }, 'a provider did not say who signs in')
        return null
      })
      if (person?.emailVerified) await onVerified(person)
      return person
    },
  }
}

async function gitHubPerson({ apiURL }: GitHubProvider, token: string): Promise<(GenericOAuthUserInfo & VerifiedProfile) | null> {
  const user = gitHubUser.parse(await read(`${apiURL}/user`, token))
  const emails = gitHubEmails.parse(await read(`${apiURL}/user/emails`, token))
  const primary = emails.find((one) => one.primary)
  if (!primary) return null
  return { id: String(user.id), name: nameOf(user.name ?? user.login), email: primary.email, emailVerified: primary.verified }
}

/** A name as people may give it in the settings: one line of bounded length. */
function nameOf(text: unknown): string {
  const line = typeof text === 'string' ? text.replaceAll(/\p{Cc}+/gu, ' ').trim() : ''
  return Array.from(line).slice(0, MAX_NAME).join('').trim()
}

async function read(url: string, token: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/vnd.github+json', 'user-agent': 'headgate-dashboard' }
  const answer = await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(PROVIDER_MS) })
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  return await answer.json()
}
