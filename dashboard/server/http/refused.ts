/** Refusals: code, status and message. Every route throws them, and one place turns them into answers. */
import type { RefusalCode } from '../page-data/people.ts'

/** HTTP status of each refusal. */
export const REFUSAL_STATUS: Readonly<Record<RefusalCode, number>> = {
  'session-ended': 401,
  'wrong-credentials': 403,
  confirm: 403,
  'wrong-origin': 403,
  'not-found': 404,
  conflict: 409,
  invalid: 422,
  'too-many-requests': 429,
  unavailable: 503,
  internal: 500,
}

export interface RefusalDetails {
  readonly fields?: Readonly<Record<string, string>>
  /** s */
  readonly retryAfter?: number
  /** More work than is accepted, while all parts answer. */
  readonly isBusy?: boolean
}

export class Refused extends Error {
  override readonly name = 'Refused'
  readonly code: RefusalCode
  readonly status: number
  readonly details: RefusalDetails

  /** @param message one sentence, shown to the person */
  constructor(code: RefusalCode, message: string, details: RefusalDetails = {}) {
    super(message)
    this.code = code
    this.status = REFUSAL_STATUS[code]
    this.details = details
  }
}

/** One answer for an absent thing and for a thing of somebody else. */
export function notFound(): Refused {
  return new Refused('not-found', 'There is nothing here.')
}
