/** Where mails go: to an SMTP server, or as files into a folder, for `make run`. */
import { type Clock, systemClock } from '#platform/clock.ts'
import { createHash } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTransport, type SendMailOptions } from 'nodemailer'
import type { MailSite } from './templates/mail.ts'
import { type MailName, type MailParameters, renderMail } from './templates/mails.ts'

/** A mail before it is rendered. */
export interface Letter<Name extends MailName = MailName> {
  readonly to: string
  readonly name: Name
  readonly parameters: MailParameters[Name]
}

export interface MailTransport {
  /** @param id names the mail: a second try has the same Message-ID */
  send(letter: Letter, id: string): Promise<void>
  close(): void
}

export interface SmtpSettings {
  readonly host: string
  readonly port: number
  /** `tls`: TLS from the first byte. `starttls`: required before anything else. `none`: for a server on the same node or in tests. */
  readonly security: 'tls' | 'starttls' | 'none'
  readonly username: string | undefined
  readonly password: string | undefined
}

export interface Sender {
  /** `Headgate <no-reply@example.com>` */
  readonly from: string
  readonly site: MailSite
}

const CONNECT_MS = 10_000
const CONNECTIONS = 2
/** Bound of one mail, ms: a server may be slow at each step, and answer each of them in time. */
const SEND_MS = 60_000

export function smtpTransport(settings: SmtpSettings, sender: Sender, clock: Clock = systemClock): MailTransport {
  const { host, port, security, username, password } = settings
  const transport = createTransport({
    pool: true,
    maxConnections: CONNECTIONS,
    host,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(username === undefined ? {} : { auth: { user: username, pass: password ?? '' } }),
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: CONNECT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return {
    send: async (letter, id) => await within(clock, SEND_MS, transport.sendMail(messageOf(sender, letter, id))),
    close: () => transport.close(),
  }
}

async function within(clock: Clock, ms: number, sent: Promise<unknown>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const cancel = clock.after(ms, () => reject(new Error(`the SMTP server took longer than ${ms / 1_000} s`)))
  await Promise.race([sent, late]).finally(cancel)
}

/** Writes each mail as an `.eml` file that only this user can read. Names sort by time. */
export function folderTransport(folder: string, sender: Sender): MailTransport {
  const transport = createTransport({
    streamTransport: true,
    buffer: true,
    newline: 'unix',
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return {
    send: async (letter, id) => {
      const { message } = await transport.sendMail(messageOf(sender, letter, id))
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const name = `${new Date().toISOString().replaceAll(':', '-')}-${letter.name}.eml`
      await writeFile(join(folder, `.${name}`), message as Buffer, { mode: 0o600 }) // buffer: true
      await rename(join(folder, `.${name}`), join(folder, name))
    },
    close: () => undefined,
  }
}

function messageOf({ from, site }: Sender, { to, name, parameters }: Letter, id: string): SendMailOptions {
  const { subject, text, html } = renderMail(site, name, parameters)
  const [, domain = 'localhost'] = /@([\w.-]+)/.exec(from) ?? []
  const messageId = `<${createHash('sha256').update(id).digest('hex').slice(0, 32)}@${domain}>`
  return { from, to: { name: '', address: to }, subject, text, html, messageId, headers: { 'Auto-Submitted': 'auto-generated' } }
}
