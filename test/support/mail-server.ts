/** A real SMTP server on loopback, which keeps what it receives. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import PostalMime from 'postal-mime'
import { SMTPServer } from 'smtp-server'

const HOST = '127.0.0.1'
/** Only catches hangs, also on a machine with other work, ms. */
const HANG_MS = 60_000
/** Idle connections of a pool have nothing to end, so they are closed at once. */
const CLOSE_MS = 1

export interface ReceivedMail {
  /** Addresses of the envelope: where the mail went, whatever its head says. */
  readonly envelope: { readonly from: string; readonly to: readonly string[] }
  readonly subject: string
  /** The address in the head of the mail. */
  readonly from: string
  readonly text: string
  readonly html: string
  /** All links of the text. */
  readonly links: readonly string[]
  /** Name of the client that signed in to the server; undefined for none. */
  readonly user: string | undefined
  /** The mail as received. */
  readonly raw: string
}

/** `reject`: each mail is refused for good (550). A number: so many mails are refused for now (451), and later ones are taken. */
export type MailFailure = number | 'reject'

interface Waiting {
  readonly to: string
  readonly subject: string | RegExp
  readonly resolve: (mail: ReceivedMail) => void
}

export class MailServer {
  /** Stays the same when a test starts a second server at `MailServer.start(port)`. */
  readonly port: number
  /** All mails, oldest first. */
  readonly mails: ReceivedMail[] = []
  readonly #server: SMTPServer
  /** Mails that `nextMail` has not returned yet. */
  readonly #unread: ReceivedMail[] = []
  readonly #waiting = new Set<Waiting>()
  #failure: MailFailure = 0

  private constructor(server: SMTPServer, port: number) {
    this.#server = server
    this.port = port
  }

  /** @param port 0 = any free one */
  static async start(port = 0): Promise<MailServer> {
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      disableReverseLookup: true, // the machine may have no name server
      closeTimeout: CLOSE_MS,
      onAuth: ({ username }, _session, callback) => callback(null, { user: username }),
      onData: (stream, session, callback) => void mail.#take(stream, session, callback),
    })
    server.on('error', () => undefined) // a client that breaks off; the client's own error fails the test
    await once(server.listen(port, HOST), 'listening')
    const mail = new MailServer(server, (server.server.address() as AddressInfo).port) // a TCP server, so no string
    return mail
  }

  get url(): string {
    return `smtp://${HOST}:${this.port}`
  }

  /** What happens to the mails from now on. `fail(0)` ends a failure. */
  fail(failure: MailFailure): void {
    this.#failure = failure
  }

  /**
   * The oldest mail to an address that was not returned before, or the next one that arrives.
   * @param subject a part of the subject
   * @throws after a minute, with the subjects of the mails that came
   */
  async nextMail(to: string, subject: string | RegExp = ''): Promise<ReceivedMail> {
    const at = this.#unread.findIndex((mail) => isFor(mail, to, subject))
    const [found] = at < 0 ? [] : this.#unread.splice(at, 1)
    if (found !== undefined) return found
    const { promise, resolve, reject } = Promise.withResolvers<ReceivedMail>()
    const waiting = { to, subject, resolve }
    this.#waiting.add(waiting)
    const came = (): string => this.mails.map((mail) => `${mail.envelope.to.join(' ')}: ${mail.subject}`).join('; ') || 'none'
    const hang = setTimeout(() => reject(new Error(`no mail to ${to} with subject ${String(subject)}; mails: ${came()}`)), HANG_MS)
    try {
      return await promise
    } finally {
      clearTimeout(hang)
      this.#waiting.delete(waiting)
    }
  }

  /** Ends the server and its connections. */
  async stop(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.close(resolve))
  }

  async #take(stream: Readable, session: Session, callback: (error?: Error) => void): Promise<void> {
    const raw = await buffer(stream)
    const problem = this.#refusal()
    if (problem === undefined) this.#keep(await parsed(raw, session))
    callback(problem)
  }

  #refusal(): Error | undefined {
    if (this.#failure === 'reject') return new SmtpError(550, 'no such mailbox')
    if (this.#failure === 0) return undefined
    this.#failure -= 1
    return new SmtpError(451, 'try again later')
  }

  #keep(mail: ReceivedMail): void {
    this.mails.push(mail)
    const waiting = [...this.#waiting].find(({ to, subject }) => isFor(mail, to, subject))
    if (waiting === undefined) this.#unread.push(mail)
    else {
      this.#waiting.delete(waiting)
      waiting.resolve(mail)
    }
  }
}

class SmtpError extends Error {
  /** smtp-server answers this code. */
  readonly responseCode: number

  constructor(responseCode: number, message: string) {
    super(message)
    this.responseCode = responseCode
  }
}

interface Session {
  readonly envelope: { readonly mailFrom: false | { readonly address: string }; readonly rcptTo: readonly { readonly address: string }[] }
  readonly user?: unknown
}

async function parsed(raw: Buffer, { envelope, user }: Session): Promise<ReceivedMail> {
  const { subject = '', from, text = '', html = '' } = await PostalMime.parse(raw)
  return {
    envelope: { from: envelope.mailFrom === false ? '' : envelope.mailFrom.address, to: envelope.rcptTo.map(({ address }) => address) },
    subject,
    from: from?.address ?? '',
    text,
    html,
    links: text.match(/https?:\/\/\S+/g) ?? [],
    user: typeof user === 'string' ? user : undefined,
    raw: raw.toString('utf8'),
  }
}

function isFor(mail: ReceivedMail, to: string, subject: string | RegExp): boolean {
  const isSubject = typeof subject === 'string' ? mail.subject.includes(subject) : subject.test(mail.subject)
  return isSubject && mail.envelope.to.some((address) => address.toLowerCase() === to.toLowerCase())
}
