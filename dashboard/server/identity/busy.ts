/** The refusal of a request that would be answered a little later. */

/** Too many requests of one source or for one subject (429), or too many passwords under way (503). */
export class Busy extends Error {
  override readonly name = 'Busy'
  readonly status: 429 | 503
  /** s */
  readonly retryAfter: number

  constructor(status: 429 | 503, retryAfter: number) {
    super(`busy: ${status}`)
    this.status = status
    this.retryAfter = retryAfter
  }
}
