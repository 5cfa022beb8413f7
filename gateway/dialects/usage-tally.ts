import { DeltaText } from './delta-text.ts'
import { laterReport, settledUsage, type Usage, type UsageReport } from './usage.ts'

/** Tokens have four bytes on average, and few have more than this. */
const MAX_BYTES_OF_ONE_TOKEN = 8
const BYTES_PER_TOKEN = 4

/** What one stream has cost so far: what its backend reports, and what it has written in case there is no report. */
export class UsageTally {
  readonly #text = new DeltaText()
  #report: UsageReport | undefined = undefined
  /** Events that brought text. */
  #events = 0
  #bytes = 0

  /** Counts the text of an event. @param event decoded as Latin-1 */
  addEvent(event: string): void {
    const bytes = this.#text.bytesOf(event)
    if (bytes === 0) return
    this.#events++
    this.#bytes += bytes
  }

  /** Takes in what an event reports. */
  addReport(report: UsageReport): void {
    this.#report = laterReport(this.#report, report)
  }

  /** @param inputTokens of the prompt, should the backend not report it */
  settled(inputTokens: number): Usage {
    return settledUsage(this.#report, { inputTokens, outputTokens: this.#outputTokens })
  }

  /** Servers send each token by itself, unless they fall behind or make several at once; then the events are longer. */
  get #outputTokens(): number {
    const isOneByOne = this.#bytes <= this.#events * MAX_BYTES_OF_ONE_TOKEN
    return isOneByOne ? this.#events : Math.max(this.#events, Math.ceil(this.#bytes / BYTES_PER_TOKEN))
  }
}
