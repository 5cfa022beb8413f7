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
  const newestFirst = mails.toReversed().sort((one, other) => other.at.getTime() - one.at.getTime())
  const open = newestFirst.find(({ id }) => id === shown)
  const main = html`<h1>${open === undefined ? 'Mail' : open.subject}</h1>
    ${open === undefined ? html`<p class="lead">Mails that this trial would have sent. Load the page again for newer ones.</p>` : openMail(open)}
    ${
      newestFirst.length === 0
        ? html`<p>No mail yet.</p>`
        : html`<ul class="rows">
            ${newestFirst.map(row)}
          </ul>`
    }`
  return door(site, { title: open === undefined ? 'Mail' : open.subject, main })
}

function openMail({ to, at, text }: MailboxMail): Html {
  return html`<p class="lead">To <b>${to}</b>, <time datetime="${at.toISOString()}">${utcTime(at, 'seconds')}</time></p>
    ${paragraphs(text)}
    <p class="aside"><a href="/dev/mail">All mails</a></p>`
}

function row({ id, to, subject, at }: MailboxMail): Html {
  return html`<li class="row">
    <div>
      <a href="${`/dev/mail/${encodeURIComponent(id)}`}">${subject}</a>
      <p>${to}, <time datetime="${at.toISOString()}">${utcTime(at, 'seconds')}</time></p>
    </div>
  </li>`
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
