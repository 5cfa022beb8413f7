import type { KubeErrorCode } from './port.ts'

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
