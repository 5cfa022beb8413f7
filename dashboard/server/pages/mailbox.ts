/** `/dev/mail` of `make run`: the mails that a mail server would have delivered. Never part of an installation. */
import { html, type Html, type HtmlValue } from './html.ts'
import { door, type Site } from './layout.ts'
import { utcTime } from './utc-time.ts'

export interface MailboxMail {
  readonly id: string
  readonly to: string
  readonly subject: string
  readonly at: Date
  readonly text: string
}

export interface MailboxView {
  readonly mails: readonly MailboxMail[]
  /** Id of the mail to show above the list. */
  readonly shown?: string | undefined
}

/** The newest mail first. Equal times keep the order of `mails`, the later one first. */
export function mailboxPage(site: Site, { mails, shown }: MailboxView): Html {
  const open = mails.find(({ id }) => id === shown)
  return open === undefined ? listPage(site, mails) : mailPage(site, open)
}

function listPage(site: Site, mails: readonly MailboxMail[]): Html {
  const newestFirst = mails.toReversed().sort((one, other) => other.at.getTime() - one.at.getTime())
  const main = html`<h1>Mail</h1>
    <p class="lead">Mails that this trial would have sent. Load the page again for newer ones.</p>
    ${newestFirst.length === 0 ? html`<p>No mail yet.</p>` : html`<div class="choices">${newestFirst.map(summary)}</div>`}`
  return door(site, { title: 'Mail', main })
}

function summary({ id, to, subject, at }: MailboxMail): Html {
  return html`<p>
    <a href="${`/dev/mail/${encodeURIComponent(id)}`}">${subject}</a><br />
    ${to}, <time datetime="${at.toISOString()}">${utcTime(at, 'seconds')}</time>
  </p>`
}

function mailPage(site: Site, { to, subject, at, text }: MailboxMail): Html {
  const main = html`<h1>${subject}</h1>
    <p class="lead">To <b>${to}</b>, <time datetime="${at.toISOString()}">${utcTime(at, 'seconds')}</time></p>
    ${paragraphs(text)}
    <p class="aside"><a href="/dev/mail">All mails</a></p>`
  return door(site, { title: subject, main })
}

/** Paragraphs and lines as in the text, so that a long line wraps on a narrow screen. */
function paragraphs(text: string): HtmlValue {
  const lines = (paragraph: string): HtmlValue =>
    paragraph.split(/\r?\n/).map((line, at) => html`${at > 0 && html`<br />`}${withLinks(line)}`)
  return text
    .trim()
    .split(/(?:\r?\n){2,}/)
    .map((paragraph) => html`<p>${lines(paragraph)}</p>`)
}

/** Splitting by a group keeps what matched, at the odd places. */
function withLinks(line: string): HtmlValue {
  return line.split(/(https?:\/\/[^\s<>"]+)/).map((part, at) => (at % 2 === 1 ? html`<a href="${part}">${part}</a>` : part))
}
