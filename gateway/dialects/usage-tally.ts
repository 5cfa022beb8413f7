import { DeltaText } from './delta-text.ts'
import { laterReport, settledUsage, type Usage, type UsageReport } from './usage.ts'

/** Largest number of bytes of one token: tokens have four bytes on average, and few have more than this. */
const MAX_BYTES_OF_ONE_TOKEN = 8
const BYTES_PER_TOKEN = 4

/** The cost of an unfinished stream: the usage that its backend reports, and the text that it has sent, in case there is no report. */
export class UsageTally {
  readonly #text = new DeltaText()
  #report: UsageReport | undefined = undefined
  /** Number of events with text. */
  #events = 0
  #bytes = 0

  /** Counts the text of an event. @param event decoded as Latin-1 */
  addEvent(event: string): void {
    const bytes = this.#text.bytesOf(event)
    if (bytes === 0) return
    this.#events++
    this.#bytes += bytes
  }

  /** Adds the report of an event. */
  addReport(report: UsageReport): void {
    this.#report = laterReport(this.#report, report)
  }

  /** @param inputTokens estimate of the prompt, in case the backend does not report it */
  settled(inputTokens: number): Usage {
    return settledUsage(this.#report, { inputTokens, outputTokens: this.#outputTokens })
  }

  /**
   * Estimates the tokens of the text. Servers send each token in an event, unless they are late or make several at once; then events are
   * longer.
   */
  get #outputTokens(): number {
    const isOneByOne = this.#bytes <= this.#events * MAX_BYTES_OF_ONE_TOKEN
    return isOneByOne ? this.#events : Math.max(this.#events, Math.ceil(this.#bytes / BYTES_PER_TOKEN))
  }
}
