/** The rate-limit headers of an answer, on 200 and 429 alike, in the names of the dialect whose SDKs read them. Pure. */
import type { ErrorFormat } from '../errors.ts'
import type { RateState, RateStates } from './ledger.ts'

const KINDS = ['requests', 'tokens'] as const
const SECOND_MS = 1_000
const MINUTE_MS = 60_000

/**
 * Name, value, name, value … No limit of a kind, no header of it.
 * @param nowMs ms since 1970
 */
export function rateHeaders(rates: RateStates, format: ErrorFormat, nowMs: number): string[] {
  const headers: string[] = []
  for (const kind of KINDS) {
    const state = rates[kind]
    if (state !== undefined) headers.push(...(format === 'openai' ? openai(kind, state) : anthropic(kind, state, nowMs)))
  }
  return headers
}

function openai(kind: string, { limit, remaining, resetMs }: RateState): string[] {
  return [
    ...[`x-ratelimit-limit-${kind}`, String(limit)],
    ...[`x-ratelimit-remaining-${kind}`, String(remaining)],
    ...[`x-ratelimit-reset-${kind}`, goDuration(resetMs)],
  ]
}

function anthropic(kind: string, { limit, remaining, resetMs }: RateState, nowMs: number): string[] {
  return [
    ...[`anthropic-ratelimit-${kind}-limit`, String(limit)],
    ...[`anthropic-ratelimit-${kind}-remaining`, String(remaining)],
    ...[`anthropic-ratelimit-${kind}-reset`, instant(nowMs + resetMs)],
  ]
}

/** As Go writes a duration: `12ms`, `7.4s`, `6m0s`. */
export function goDuration(ms: number): string {
  const whole = Math.max(0, Math.ceil(ms))
  if (whole < SECOND_MS) return `${whole}ms`
  if (whole < MINUTE_MS) return `${whole / SECOND_MS}s`
  return `${Math.floor(whole / MINUTE_MS)}m${(whole % MINUTE_MS) / SECOND_MS}s`
}

/** RFC 3339 in UTC, rounded up to a second. */
function instant(ms: number): string {
  return `${new Date(Math.ceil(ms / SECOND_MS) * SECOND_MS).toISOString().slice(0, 19)}Z`
}
