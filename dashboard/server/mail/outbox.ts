/**
 * Sends mails after the answer that caused them, and again after failures. Rows are sealed in the database until the mail is sent, because mails
 * contain links that sign people in.
 */
import { type Clock, sleep } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import type { Sealing } from '../identity/sealing.ts'
import type { MailName, MailParameters } from './templates/mails.ts'
import type { Letter, MailTransport } from './transport.ts'

/** A row that this process alone may send now. */
export interface ClaimedMail {
  readonly id: string
  readonly sealed: string
  /** This one included. */
  readonly attempts: number
  readonly createdMs: number
}

export interface OutboxRows {
  add(sealed: string): Promise<void>
  /** Takes due rows; each becomes due again after `retryAfterMs` of its attempts, unless it is removed. */
  claim(limit: number, retryAfterMs: (attempts: number) => number): Promise<readonly ClaimedMail[]>
  remove(id: string): Promise<void>
  waiting(): Promise<number>
  /** When the next row is due, ms since 1970. */
  nextDueMs(): Promise<number | undefined>
}

export interface OutboxDeps {
  readonly rows: OutboxRows
  readonly sealing: Sealing
  readonly transport: MailTransport
  readonly clock: Clock
  readonly log: Log
  readonly onSent: (outcome: 'sent' | 'failed' | 'given-up') => void
}

/** Waits before the next try, by the number of tries so far. A process that dies while it sends loses its claim after the same time. */
const RETRY_MS = [15_000, 60_000, 300_000, 900_000, 3_600_000]
const BATCH = 20
/** Longest pause between two looks: another replica may have stored a mail and died. */
const IDLE_MS = 30_000

export class Outbox {
  readonly #deps: OutboxDeps
  readonly #stopping = new AbortController()
  #wake = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(deps: OutboxDeps) {
    this.#deps = deps
  }

  /** Stores a mail; it is sent soon after. */
  async queue<Name extends MailName>(to: string, name: Name, parameters: MailParameters[Name]): Promise<void> {
    const { rows, sealing } = this.#deps
    const letter: Letter<Name> = { to, name, parameters }
    await rows.add(sealing.seal(JSON.stringify(letter)))
    this.#wake.abort()
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Resolves when the mails under way are sent. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#wake.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#deps
    while (!this.#stopping.signal.aborted) {
      this.#wake = new AbortController()
      try {
        if (await this.#sendDue()) continue
        await sleep(clock, await this.#pauseMs(), this.#wake.signal)
      } catch (error) {
        log.warn({ error: messageOf(error) }, 'the outbox cannot be read')
        await sleep(clock, RETRY_MS[0] ?? IDLE_MS, this.#stopping.signal)
      }
    }
  }

  async #pauseMs(): Promise<number> {
    const { rows, clock } = this.#deps
    const dueMs = await rows.nextDueMs()
    return dueMs === undefined ? IDLE_MS : Math.min(IDLE_MS, Math.max(0, dueMs - clock.now()))
  }

  /** @returns whether there may be more */
  async #sendDue(): Promise<boolean> {
    const claimed = await this.#deps.rows.claim(BATCH, (attempts) => RETRY_MS[attempts - 1] ?? IDLE_MS)
    await Promise.all(claimed.map((one) => this.#send(one)))
    return claimed.length === BATCH
  }

  async #send({ id, sealed, attempts }: ClaimedMail): Promise<void> {
    const { rows, sealing, transport, log, onSent } = this.#deps
    const text = sealing.open(sealed)
    if (text === undefined) {
      log.error('a mail cannot be opened, because the secret of the dashboard has changed since; the mail is deleted')
      return await rows.remove(id)
    }
    const letter = JSON.parse(text) as Letter // sealed by us
    try {
      await transport.send(letter, id)
    } catch (error) {
      const isLast = attempts >= RETRY_MS.length
      onSent(isLast ? 'given-up' : 'failed')
      const what = { mail: letter.name, attempts, error: messageOf(error) }
      log[isLast ? 'error' : 'warn'](what, isLast ? 'a mail was not sent, and is given up' : 'a mail was not sent; it is tried again')
      if (isLast) await rows.remove(id)
      return
    }
    onSent('sent')
    await rows.remove(id)
  }
}
