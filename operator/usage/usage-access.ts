/** Who may read usage and ledger of an account: the API server knows the caller (TokenReview) and the rights (SubjectAccessReview). */
import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { z } from 'zod'
import { API_GROUP } from '#api/metadata.ts'
import type { KubeObject, KubePort, Resource } from '#kube/port.ts'
import type { Clock } from '#platform/clock.ts'

/** The only audience whose tokens are accepted: a token for another service opens nothing here. */
export const USAGE_AUDIENCE = 'headgate-usage'

/** A refusal as the caller reads it; undefined: allowed. */
export type UsageRefusal = { readonly status: 401 | 403; readonly message: string } | undefined

/** What a caller may read of an account: a subresource in RBAC. */
export type Readable = 'usage' | 'ledger'

export interface UsageAccess {
  /** @throws errors of the API server */
  check(headers: IncomingHttpHeaders, account: string, what: Readable): Promise<UsageRefusal>
}

interface Review extends KubeObject {
  readonly spec: unknown
  readonly status?: unknown
}

const tokenReviews: Resource<Review> = {
  ...{ group: 'authentication.k8s.io', version: 'v1', plural: 'tokenreviews', kind: 'TokenReview', namespaced: false },
}
const accessReviews: Resource<Review> = {
  ...{ group: 'authorization.k8s.io', version: 'v1', plural: 'subjectaccessreviews', kind: 'SubjectAccessReview', namespaced: false },
}

const tokenStatus = z.object({
  authenticated: z.boolean().default(false),
  audiences: z.array(z.string()).default([]),
  user: z
    .object({
      username: z.string().default(''),
      uid: z.string().optional(),
      groups: z.array(z.string()).default([]),
      extra: z.record(z.string(), z.array(z.string())).optional(),
    })
    .optional(),
})
const accessStatus = z.object({ allowed: z.boolean() })

/** An answer of the API server counts for this time, ms. */
const KNOWN_MS = 10_000
const MAX_KNOWN = 1_000
/** Longest token that is asked about, characters. */
const MAX_TOKEN = 16_384

export class KubeUsageAccess implements UsageAccess {
  readonly #kube: Pick<KubePort, 'create'>
  readonly #clock: Pick<Clock, 'monotonic'>
  /** By SHA-256 of token, account and subresource, so that no token stays in memory. */
  readonly #known = new Map<string, { readonly refusal: UsageRefusal; readonly untilMs: number }>()

  constructor(kube: Pick<KubePort, 'create'>, clock: Pick<Clock, 'monotonic'>) {
    this.#kube = kube
    this.#clock = clock
  }

  async check({ authorization = '' }: IncomingHttpHeaders, account: string, what: Readable): Promise<UsageRefusal> {
    const token = /^Bearer (\S+)$/i.exec(authorization)?.[1]
    if (token === undefined || token.length > MAX_TOKEN) return UNKNOWN
    const id = hash('sha256', JSON.stringify([token, account, what]), 'hex')
    const nowMs = this.#clock.monotonic()
    const known = this.#known.get(id)
    if (known !== undefined && known.untilMs > nowMs) return known.refusal
    const refusal = await this.#ask(token, account, what)
    const [oldest = ''] = this.#known.keys()
    if (this.#known.size >= MAX_KNOWN) this.#known.delete(oldest)
    this.#known.delete(id)
    this.#known.set(id, { refusal, untilMs: nowMs + KNOWN_MS })
    return refusal
  }

  async #ask(token: string, account: string, what: Readable): Promise<UsageRefusal> {
    const { authenticated, audiences, user } = tokenStatus.parse(await this.#review(tokenReviews, { token, audiences: [USAGE_AUDIENCE] }))
    if (!authenticated || user === undefined || !audiences.includes(USAGE_AUDIENCE)) return UNKNOWN
    const { username, uid, groups, extra } = user
    const resourceAttributes = { group: API_GROUP, resource: 'accounts', subresource: what, name: account, verb: 'get' }
    const { allowed } = accessStatus.parse(await this.#review(accessReviews, { user: username, uid, groups, extra, resourceAttributes }))
    if (allowed) return undefined
    const message = `${username} may not read the ${what} of this account; a ClusterRole with the verb get on accounts/${what} of ${API_GROUP} allows it`
    return { status: 403, message }
  }

  async #review(resource: Resource<Review>, spec: unknown): Promise<unknown> {
    const object: Review = { apiVersion: `${resource.group}/${resource.version}`, kind: resource.kind, metadata: { name: '' }, spec }
    return (await this.#kube.create(resource, object)).status
  }
}

const UNKNOWN: UsageRefusal = {
  status: 401,
  message: `send Authorization: Bearer with a token of a ServiceAccount for the audience ${USAGE_AUDIENCE} (kubectl create token NAME --audience ${USAGE_AUDIENCE})`,
}

/** For `make run`, which listens on loopback: a page of the web could otherwise read by a name of its own that leads to 127.0.0.1. */
export const LOOPBACK_ACCESS: UsageAccess = {
  check: ({ host = '' }) =>
    Promise.resolve(/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(host) ? undefined : { status: 403, message: 'use 127.0.0.1 as the host' }),
}
