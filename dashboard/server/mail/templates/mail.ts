/** The form of all our mails: text and simple HTML with the same words, no remote content, at most one link, and that link to this dashboard. */
import { html } from '../../pages/html.ts'

export interface MailSite {
  /** Name of the program, for the subject. */
  readonly name: string
  /** The configured base URL of the dashboard, never taken from a request. */
  readonly url: string
}

export interface Mail {
  readonly subject: string
  readonly text: string
  readonly html: string
}

export interface MailContent {
  readonly subject: string
  /** Paragraphs before the link, and after the link. */
  readonly before: readonly string[]
  /** @see linkOf for the path */
  readonly link?: { readonly label: string; readonly path: string }
  readonly after?: readonly string[]
}

export function compose(site: MailSite, content: MailContent): Mail {
  const { before, link, after = [] } = content
  const url = link && linkOf(site, link.path)
  const foot = `${site.name} sends this mail because of your account, or because somebody typed this address there.`
  return {
    subject: oneLine(content.subject),
    text: `${[...before, ...(link && url !== undefined ? [`${link.label}:\n${url}`] : []), ...after, `-- \n${foot}`].join('\n\n')}\n`,
    html: html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <title>${oneLine(content.subject)}</title>
        </head>
        <body>
          ${before.map(paragraph)} ${link && url !== undefined && html`<p><a href="${url}">${link.label}</a></p>`} ${after.map(paragraph)}
          <hr />
          <p><small>${foot}</small></p>
        </body>
      </html>`.toString(),
  }
}

const paragraph = (text: string): ReturnType<typeof html> => html`<p>${text}</p>`

/**
 * @param path begins with `/`, may have a query. Directly after a host name, other characters could change the host.
 * @throws TypeError if `path` is not a path
 */
function linkOf(site: MailSite, path: string): string {
  if (!path.startsWith('/')) throw new TypeError('a mail links to a path of the dashboard')
  return new URL(new URL(site.url).href.replace(/\/$/, '') + path).href
}

/** A subject is one line of a header: a line break in it would begin another header. */
export function oneLine(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .slice(0, 200)
}
