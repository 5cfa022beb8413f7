/** The rate-limit headers of an answer, on 200 and 429 alike, under the names that the SDKs of the dialect read. Pure. */
import { rfc3339 } from '#contract/values/rfc3339.ts'
import type { ErrorFormat } from '../errors.ts'
import type { RateState, RateStates } from './ledger.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000

interface Names {
  readonly limit: string
  readonly remaining: string
  readonly reset: string
}

/** Names by dialect and kind, so that no answer has to build them. */
const NAMES: Readonly<Record<ErrorFormat, Readonly<Record<keyof RateStates, Names>>>> = {
  openai: { requests: openaiNames('requests'), tokens: openaiNames('tokens') },
  anthropic: { requests: anthropicNames('requests'), tokens: anthropicNames('tokens') },
}

function openaiNames(kind: string): Names {
  return { limit: `x-ratelimit-limit-${kind}`, remaining: `x-ratelimit-remaining-${kind}`, reset: `x-ratelimit-reset-${kind}` }
}

function anthropicNames(kind: string): Names {
  const prefix = `anthropic-ratelimit-${kind}`
  return { limit: `${prefix}-limit`, remaining: `${prefix}-remaining`, reset: `${prefix}-reset` }
}

/** Name, value, name, value … A kind without a limit has no header. @param nowMs ms since 1970 */
export function rateHeaders({ requests, tokens }: RateStates, format: ErrorFormat, nowMs: number): string[] {
  const headers: string[] = []
  const names = NAMES[format]
  if (requests !== undefined) addHeaders(headers, names.requests, requests, resetOf(requests, format, nowMs))
  if (tokens !== undefined) addHeaders(headers, names.tokens, tokens, resetOf(tokens, format, nowMs))
  return headers
}

function addHeaders(headers: string[], names: Names, { limit, remaining }: RateState, reset: string): void {
  headers.push(names.limit, String(limit), names.remaining, String(remaining), names.reset, reset)
}

function resetOf({ resetMs }: RateState, format: ErrorFormat, nowMs: number): string {
  return format === 'openai' ? goDuration(resetMs) : instant(nowMs + resetMs)
}

/** Formats a duration as Go does: `12ms`, `7.4s`, `6m0s`. */
export function goDuration(ms: number): string {
  const whole = Math.max(0, Math.ceil(ms))
  if (whole < SECOND_MS) return `${whole}ms`
  if (whole < MINUTE_MS) return `${whole / SECOND_MS}s`
  return `${Math.floor(whole / MINUTE_MS)}m${(whole % MINUTE_MS) / SECOND_MS}s`
}

/** RFC 3339 in UTC, rounded up to a second. */
export function instant(ms: number): string {
  return rfc3339(Math.ceil(ms / SECOND_MS) * SECOND_MS)
}
