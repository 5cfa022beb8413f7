/** The providers that people may sign in through: GitHub, Google and any OpenID Connect issuer. All go through one generic client. */
import type { GenericOAuthConfig } from 'better-auth/plugins/generic-oauth'
import { z } from 'zod'
import type { Provider } from '../page-data.ts'

/** GitHub, or a GitHub Enterprise. */
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

/** Called before the library looks for a person with the address of the profile. */
export type OnVerified = (profile: VerifiedProfile) => Promise<void>

/** Bound of the requests to a provider, ms. */
const PROVIDER_MS = 10_000

export function oauthConfig(settings: ProviderSettings, onVerified: OnVerified): GenericOAuthConfig {
  return settings.kind === 'github' ? gitHub(settings, onVerified) : issuer(settings, onVerified)
}

function issuer({ id, issuer: url, clientId, clientSecret }: IssuerProvider, onVerified: OnVerified): GenericOAuthConfig {
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
      return {}
    },
  }
}

const gitHubUser = z.object({ id: z.int(), login: z.string(), name: z.string().nullish() })
const gitHubEmails = z.array(z.object({ email: z.email(), primary: z.boolean(), verified: z.boolean() }))

function gitHub({ id, url, apiURL, clientId, clientSecret }: GitHubProvider, onVerified: OnVerified): GenericOAuthConfig {
  return {
    providerId: id,
    authorizationUrl: `${url}/login/oauth/authorize`,
    tokenUrl: `${url}/login/oauth/access_token`,
    clientId,
    clientSecret,
    pkce: true,
    scopes: ['read:user', 'user:email'],
    getUserInfo: async ({ accessToken = '' }) => {
      const user = gitHubUser.parse(await read(`${apiURL}/user`, accessToken))
      const emails = gitHubEmails.parse(await read(`${apiURL}/user/emails`, accessToken))
      const primary = emails.find((one) => one.primary)
      if (!primary) return null
      if (primary.verified) await onVerified({ email: primary.email })
      return { id: String(user.id), name: user.name ?? user.login, email: primary.email, emailVerified: primary.verified }
    },
  }
}

async function read(url: string, token: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/vnd.github+json', 'user-agent': 'headgate-dashboard' }
  const answer = await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(PROVIDER_MS) })
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  return await answer.json()
}
