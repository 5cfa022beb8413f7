/** Sends the events of the stand-in as badly as the internet may: never, once or three times, late, in another order, and with forged ones between. */
import type { StubEvent } from './state.ts'
import type { StubStripe } from './stub-stripe.ts'

export interface EventSenderOptions {
  readonly stripe: StubStripe
  /** Where events are sent. */
  readonly url: string
  readonly after: (ms: number, callback: () => void) => void
  /** How often each event in turn is sent. */
  readonly times?: readonly number[]
  /** Called with the status of each answer; 0: there was none. */
  readonly onSent?: (event: StubEvent, status: number, isForged: boolean) => void
}

const TIMES = [1, 3, 0]
/** Pause before a copy, ms: the second copy of an event comes after the first one of the next event. */
const LATE_MS = 1_500

export class EventSender {
  readonly #options: EventSenderOptions
  #sent = 0

  constructor(options: EventSenderOptions) {
    this.#options = options
  }

  /** Begins to send; returns at once. */
  send(event: StubEvent): void {
    const { times = TIMES, stripe, after } = this.#options
    const count = times[this.#sent % times.length] ?? 1
    this.#sent += 1
    this.#post(event, stripe.signed(event, { secret: 'a forged secret' }), true)
    for (let copy = 0; copy < count; copy += 1) after(copy * LATE_MS, () => this.#post(event, stripe.signed(event), false))
  }

  #post(event: StubEvent, { body, signature }: ReturnType<StubStripe['signed']>, isForged: boolean): void {
    const headers = { 'content-type': 'application/json', 'stripe-signature': signature }
    const { url, onSent = () => undefined } = this.#options
    fetch(url, { method: 'POST', headers, body }).then(
      ({ status }) => onSent(event, status, isForged),
      () => onSent(event, 0, isForged),
    )
  }
}
