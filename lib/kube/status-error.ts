import { z } from 'zod'
import { KubeError, type KubeErrorCode } from './port.ts'
import type { KubeAnswer } from './transport.ts'

/** The fields of the API server's Status object that affect decisions. */
const statusBody = z.object({
  kind: z.literal('Status'),
  reason: z.string().default(''),
  message: z.string().default(''),
  code: z.number().optional(),
  details: z
    .object({
      retryAfterSeconds: z.number().optional(),
      causes: z.array(z.object({ reason: z.string().optional(), field: z.string().optional() })).default([]),
    })
    .optional(),
})

export type StatusBody = z.infer<typeof statusBody>

/** The request, for the message. */
export interface Asked {
  readonly verb: string
  /** Plural and group. */
  readonly resource: string
  /** `namespace/name`, or the namespace of a list. */
  readonly object: string
  readonly namespace?: string | undefined
}

/** A refusal by the API server, with two facts that the code does not express. */
export class StatusError extends KubeError {
  /** Whether the server knows the path; false = the kind is not served, for example because its CRD is not installed. */
  readonly served: boolean
  /** Whether the requested resourceVersion is above all versions of this API server (another server, or a restored etcd). */
  readonly versionTooLarge: boolean

  constructor(asked: Asked, answer: Pick<KubeAnswer, 'status' | 'text'> & Partial<KubeAnswer>) {
    const body = readStatus(answer.text)
    const refusal = policyRefusal(answer.status, body?.message ?? '')
    const code = refusal?.code ?? codeOf(answer.status, body)
    const message = describe(asked, { status: answer.status, code, body, refusal })
    super(code, answer.status, message, { ...refusal, namespace: asked.namespace, retryAfterSeconds: waitSeconds(answer, body) })
    this.served = answer.status !== 404 || body !== undefined
    this.versionTooLarge = causes(body).includes('ResourceVersionTooLarge')
  }
}

function waitSeconds({ headers }: Partial<KubeAnswer>, body: StatusBody | undefined): number | undefined {
  const asked = headers?.['retry-after'] ?? body?.details?.retryAfterSeconds
  const seconds = Number(asked ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined
}

/** Makes the error of a call without an answer: the connection failed, broke or timed out. The server may have applied the request. */
export function unreachable(asked: Asked, cause: unknown): KubeError {
  const why = cause instanceof Error ? ('code' in cause && cause.message === '' ? String(cause.code) : cause.message) : 'unknown failure'
  return new KubeError('Unreachable', 0, `${subject(asked)}: no answer from the API server: ${why}`, { cause, namespace: asked.namespace })
}

/** @returns undefined for a body that is not a Status ("404 page not found" of an unknown path, the page of a proxy) */
function readStatus(text: string): StatusBody | undefined {
  try {
    return statusBody.safeParse(JSON.parse(text)).data
  } catch {
    return undefined // not JSON: the HTTP status alone decides
  }
}

function codeOf(status: number, body: StatusBody | undefined): KubeErrorCode {
  if (isOwnerUnknown(status, body)) return 'Unreachable'
  if (status === 403) return causes(body).includes('NamespaceTerminating') ? 'NamespaceTerminating' : 'Forbidden'
  if (status === 409) return body?.reason === 'AlreadyExists' ? 'AlreadyExists' : 'Conflict'
  if (status >= 500) return 'Unreachable'
  return BY_STATUS[status] ?? 'Other'
}

/**
 * Whether OwnerReferencesPermissionEnforcement refuses an owner because the API server has not discovered a new kind yet. The API server
 * discovers kinds again every 30 s. No right is missing, and a later try succeeds.
 */
function isOwnerUnknown(status: number, body: StatusBody | undefined): boolean {
  return status === 403 && /cannot set blockOwnerDeletion in this case because cannot find RESTMapping/.test(body?.message ?? '')
}

const BY_STATUS: Readonly<Record<number, KubeErrorCode>> = {
  400: 'Invalid',
  401: 'Unauthorized',
  404: 'NotFound',
  410: 'Expired',
  422: 'Invalid',
  429: 'TooManyRequests',
}

function causes(body: StatusBody | undefined): readonly string[] {
  return (body?.details?.causes ?? []).flatMap((cause) => (cause.reason ? [cause.reason] : []))
}

/** Details of a refusal. */
interface Refused {
  readonly status: number
  readonly code: KubeErrorCode
  readonly body: StatusBody | undefined
  readonly refusal: PolicyRefusal | undefined
}

/**
 * Quotes the server's own message, with secrets hidden, for quotas, admission and webhooks that fail, and for any other 403 except for Secrets, since a 403
 * names user and verb. Other messages may quote the object ("Invalid value: …").
 */
function describe(asked: Asked, refused: Refused): string {
  if (isOwnerUnknown(refused.status, refused.body))
    return `${subject(asked)}: the API server does not know the kind of the owner yet, since its CustomResourceDefinition is new`
  const { reason = '', details } = refused.body ?? {}
  const fields = (details?.causes ?? []).flatMap((cause) => (cause.field ? [cause.field] : [])).slice(0, 8)
  const parts = [String(refused.status), reason, fields.length > 0 ? `(${fields.join(', ')})` : ''].filter((part) => part !== '')
  const quote = quoteOf(asked, refused)
  return `${subject(asked)}: ${parts.join(' ')}${quote === '' ? '' : `: ${quote}`}${rightsRemedy(asked, refused.code)}`
}

function quoteOf({ resource }: Asked, { status, body, refusal }: Refused): string {
  if (refusal) return refusal.policy === undefined ? refusal.reason : `${refusal.policy}: ${refusal.reason}`
  const message = body?.message ?? ''
  if (status >= 500) return webhookFailure(message)
  return status === 403 && resource !== 'secrets' ? safeText(message) : ''
}

/** @returns '' for any other failure */
function webhookFailure(message: string): string {
  const [, webhook = '', why = ''] = WEBHOOK_FAILURE.exec(message) ?? []
  return webhook === '' ? '' : `admission webhook ${safeText(webhook)} cannot be called (${safeText(why)})`
}

/** Informers log the rights that they need. Only Secrets are also listed without an informer, so this message names the right. */
function rightsRemedy({ verb, resource }: Asked, code: KubeErrorCode): string {
  if (code !== 'Forbidden' || ((verb === 'list' || verb === 'watch') && resource !== 'secrets')) return ''
  return `; grant the operator's ServiceAccount this right (the Helm chart does)`
}

function subject(asked: Asked): string {
  return `${asked.verb} ${asked.resource}${asked.object === '' ? '' : ` ${asked.object}`}`
}

/** A refusal by a quota or by admission control. */
export interface PolicyRefusal {
  readonly code: Extract<KubeErrorCode, 'QuotaExceeded' | 'AdmissionDenied'>
  /** Name of the ValidatingAdmissionPolicy or webhook. */
  readonly policy?: string
  /** The message of the quota, policy or webhook, safe to show. */
  readonly reason: string
}

const MAX_REASON_CHARACTERS = 300

/** The patterns match the beginning of a message only, so an object that repeats such a message in a field does not match. */
const PREFIX = String.raw`^(?:[^:]{1,400} is forbidden: )?`
const QUOTA = new RegExp(`${PREFIX}(exceeded quota: .*)$`, 's')
const POLICY = new RegExp(`${PREFIX}ValidatingAdmissionPolicy '([^']*)' with binding '[^']*' denied request: (.*)$`, 's')
const WEBHOOK = new RegExp(`${PREFIX}admission webhook "([^"]*)" denied the request(?:: | )(.*)$`, 's')

/** A webhook that does not answer fails the call, and the next try may succeed: this is no refusal, but the owner must learn the name. */
const WEBHOOK_FAILURE = /^(?:Internal error occurred: )?failed calling webhook "([^"]{1,253})": (.*)$/s

/** @param message of the Status that the API server answered. @returns undefined for any other refusal */
export function policyRefusal(status: number, message: string): PolicyRefusal | undefined {
  if (status < 400 || status > 499) return undefined
  const quota = status === 403 ? QUOTA.exec(message)?.[1] : undefined
  if (quota !== undefined) return { code: 'QuotaExceeded', reason: safeText(quota) }
  const [, policy, reason] = POLICY.exec(message) ?? WEBHOOK.exec(message) ?? []
  return policy === undefined ? undefined : { code: 'AdmissionDenied', policy: safeText(policy), reason: safeText(reason ?? '') }
}

/** Text of the server that is safe to show: at most 300 characters, without Credentials and without long runs of base64. */
export function safeText(text: string): string {
  const hidden = text.replace(/sk-[\w-]{6,}/g, 'sk-…').replace(/[A-Za-z0-9+/]{32,}={0,2}/g, '…')
  return hidden.length > MAX_REASON_CHARACTERS ? `${hidden.slice(0, MAX_REASON_CHARACTERS - 1)}…` : hidden
}
