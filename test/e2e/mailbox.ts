/** The mails that the mail server of the cluster took. That server prints each mail, so the log of its pod is the mailbox. */
import PostalMime from 'postal-mime'
import { waitFor } from '../support/wait-for.ts'
import type { Cluster } from './cluster.ts'

export interface Mail {
  readonly to: string
  readonly subject: string
  /** Addresses in the text. */
  readonly links: readonly string[]
}

/** Each look runs kubectl once. */
const EVERY_MS = 300

export class Mailbox {
  readonly #cluster: Cluster
  readonly #taken = new Set<number>()

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  /** Waits for a mail that no earlier call has returned. */
  async next(to: string, subject: RegExp): Promise<Mail> {
    const isWanted = (mail: Mail, index: number): boolean => !this.#taken.has(index) && mail.to === to && subject.test(mail.subject)
    return await waitFor(
      `a mail to ${to} with the subject ${String(subject)}`,
      async () => {
        const mails = await this.all()
        const found = mails.findIndex(isWanted)
        this.#taken.add(found)
        return mails[found]
      },
      { everyMs: EVERY_MS },
    )
  }

  async all(): Promise<readonly Mail[]> {
    const log = await this.#cluster.kubectl('-n', 'front', 'logs', 'mail')
    return await Promise.all(log.split(/^\.$/m).slice(0, -1).map(parsed))
  }
}

/** @param lines as SMTP sends them: a point at the start of a line is doubled */
async function parsed(lines: string): Promise<Mail> {
  const { to, subject = '', text = '' } = await PostalMime.parse(lines.trimStart().replaceAll(/^\.\./gm, '.'))
  return { to: to?.[0]?.address ?? '', subject, links: text.match(/https?:\/\/\S+/g) ?? [] }
}
