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

/** The person whose change is under way, and how to find out whether the change was made. */
export interface HeldFor {
  readonly userId: string
  readonly held: string
}

export interface HeldMail {
  readonly id: string
  readonly sealed: string
}

export interface OutboxRows {
  add(sealed: string): Promise<void>
  /** Stores a row that is not due before it is released. @returns its id */
  hold(sealed: string, why: HeldFor): Promise<string>
  /** Makes a held row due. A row that is no longer there is stored again. */
  release(id: string, sealed: string): Promise<void>
  /** Takes due rows. Each becomes due again after `leaseMs`, unless it is put off or removed before. */
  claim(limit: number, leaseMs: number): Promise<readonly ClaimedMail[]>
  putOff(id: string, delayMs: number): Promise<void>
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

/** Waits before the next try, by the number of tries so far. After the last wait comes one more try. */
const RETRY_MS = [15_000, 60_000, 300_000, 900_000, 3_600_000]
/** Few, since a batch must be sent within its claim: the SMTP transport sends two at once, and each within a minute. */
const BATCH = 4
/** A process that dies while it sends loses its claim after this time. No other one sends the same mail before. */
export const LEASE_MS = 150_000
/** Longest pause between two looks: another replica may have stored a mail and died. */
const IDLE_MS = 30_000

export class Outbox {
  readonly #deps: OutboxDeps
  readonly #stopping = new AbortController()
  /** Mails that were sent, and whose rows could not be removed: they are not sent again. */
  readonly #sent = new Set<string>()
  #wake = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(deps: OutboxDeps) {
    this.#deps = deps
  }

  /** Stores a mail; it is sent soon after. */
  async queue<Name extends MailName>(to: string, name: Name, parameters: MailParameters[Name]): Promise<void> {
    await this.#deps.rows.add(this.seal({ to, name, parameters }))
    this.wake()
  }

  /** Stores a mail that is sent once it is released. */
  async hold<Name extends MailName>({ to, name, parameters }: Letter<Name>, why: HeldFor): Promise<HeldMail> {
    const sealed = this.seal({ to, name, parameters })
    return { id: await this.#deps.rows.hold(sealed, why), sealed }
  }

  async release({ id, sealed }: HeldMail): Promise<void> {
    await this.#deps.rows.release(id, sealed)
    this.wake()
  }

  /** A mail as a row has it, for rows that are stored together with what they report. */
  seal<Name extends MailName>({ to, name, parameters }: Letter<Name>): string {
    return this.#deps.sealing.seal(JSON.stringify({ to, name, parameters }))
  }

  /** Looks for due rows now. */
  wake(): void {
    this.#wake.abort()
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Resolves when the mails under way are sent. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.wake()
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
    const claimed = await this.#deps.rows.claim(BATCH, LEASE_MS)
    const ends = await Promise.allSettled(claimed.map((one) => this.#send(one)))
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed) throw failed.reason
    return claimed.length === BATCH
  }

  async #send(mail: ClaimedMail): Promise<void> {
    const { rows, sealing, log } = this.#deps
    const { id, sealed } = mail
    const text = sealing.open(sealed)
    if (text === undefined) log.error('a mail cannot be opened, because the secret of the dashboard has changed since; the mail is deleted')
    else if (!this.#sent.has(id)) {
      if (!(await this.#deliver(JSON.parse(text) as Letter, mail))) return // sealed by us
      this.#sent.add(id)
    }
    await rows.remove(id)
    this.#sent.delete(id)
  }

  /** @returns whether the row has served its purpose */
  async #deliver(letter: Letter, { id, attempts }: ClaimedMail): Promise<boolean> {
    const { rows, transport, log, onSent } = this.#deps
    try {
      await transport.send(letter, id)
      onSent('sent')
      return true
    } catch (error) {
      const retryMs = RETRY_MS[attempts - 1]
      const reason = messageOf(error).replaceAll(letter.to, 'the address') // mail servers quote it, and logs name no people
      const what = { mail: letter.name, attempts, error: reason }
      onSent(retryMs === undefined ? 'given-up' : 'failed')
      if (retryMs === undefined) log.error(what, 'a mail was not sent, and is given up')
      else log.warn(what, 'a mail was not sent; it is tried again')
      if (retryMs !== undefined) await rows.putOff(id, retryMs)
      return retryMs === undefined
    }
  }
}
