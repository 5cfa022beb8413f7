import { z } from 'zod'
import { KubeError, type KubeErrorCode } from './port.ts'

/** The API server's Status object, as far as it decides anything. */
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

/** A Status, read. */
export type StatusBody = z.infer<typeof statusBody>

/** What was asked, for the message. */
export interface Asked {
  readonly verb: string
  /** Plural and group. */
  readonly resource: string
  /** `namespace/name`, or the namespace of a list. */
  readonly object: string
}

/** A refusal by the API server, with what the reflector must tell apart beyond the code. */
export class StatusError extends KubeError {
  /** Whether the server knows the path at all: false = the kind is not served, e.g. its CRD is not installed. */
  readonly served: boolean
  /** The asked resourceVersion lies in the future of this API server (another one, or a restored etcd). */
  readonly versionTooLarge: boolean

  constructor(asked: Asked, answer: { status: number; text: string; retryAfter?: string | undefined }) {
    const body = readStatus(answer.text)
    const code = codeOf(answer.status, body)
    const waitSeconds = Number(answer.retryAfter ?? body?.details?.retryAfterSeconds ?? Number.NaN)
    super(code, answer.status, describe(asked, answer.status, body), {
      ...(Number.isFinite(waitSeconds) && waitSeconds >= 0 ? { retryAfterSeconds: waitSeconds } : {}),
    })
    this.served = answer.status !== 404 || body !== undefined
    this.versionTooLarge = causes(body).includes('ResourceVersionTooLarge')
  }
}

/** No answer: the connection failed, broke or timed out. What was asked may have been done. */
export function unreachable(asked: Asked, cause: unknown): KubeError {
  const why = cause instanceof Error ? ('code' in cause && cause.message === '' ? String(cause.code) : cause.message) : 'unknown failure'
  return new KubeError('Unreachable', 0, `${subject(asked)}: no answer from the API server: ${why}`, { cause })
}

/** @returns undefined for a body that is no Status ("404 page not found" of an unknown path, a proxy's page) */
function readStatus(text: string): StatusBody | undefined {
  try {
    return statusBody.safeParse(JSON.parse(text)).data
  } catch {
    return undefined // not JSON: the HTTP status alone decides
  }
}

function codeOf(status: number, body: StatusBody | undefined): KubeErrorCode {
  if (status === 403) return causes(body).includes('NamespaceTerminating') ? 'NamespaceTerminating' : 'Forbidden'
  if (status === 409) return body?.reason === 'AlreadyExists' ? 'AlreadyExists' : 'Conflict'
  if (status >= 500) return 'Unreachable'
  return BY_STATUS[status] ?? 'Other'
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

/**
 * The server's own sentence is quoted for 403 alone, where it names user, verb and quota, and never for Secrets: others may quote the
 * object ("Invalid value: …"), and a webhook may quote anything.
 */
function describe(asked: Asked, status: number, body: StatusBody | undefined): string {
  const { reason = '', message = '', details } = body ?? {}
  const fields = (details?.causes ?? []).flatMap((cause) => (cause.field ? [cause.field] : [])).slice(0, 8)
  const isQuotable = status === 403 && asked.resource !== 'secrets' && message !== ''
  const parts = [String(status), reason, fields.length > 0 ? `(${fields.join(', ')})` : ''].filter((part) => part !== '')
  const cure = rightsCure(asked, codeOf(status, body))
  return `${subject(asked)}: ${parts.join(' ')}${isQuotable ? `: ${message.slice(0, 300)}` : ''}${cure}`
}

/** Informers name the rights that they need in a line of their own; Secrets alone are listed without one. */
function rightsCure({ verb, resource }: Asked, code: KubeErrorCode): string {
  if (code !== 'Forbidden' || ((verb === 'list' || verb === 'watch') && resource !== 'secrets')) return ''
  return `; grant the operator's ServiceAccount this right (the Helm chart does), or lift the quota or policy that refuses it`
}

function subject(asked: Asked): string {
  return `${asked.verb} ${asked.resource}${asked.object === '' ? '' : ` ${asked.object}`}`
}
