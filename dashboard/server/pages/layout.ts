/** The frame of all pages before sign-in. They work without JavaScript, hold no inline style or script, and load nothing from other sites. */
import type { Provider } from '../page-data/people.ts'
import { html, type Html } from './html.ts'
import { CANAL, MARK } from './icons.ts'

/** What all pages of one installation share. */
export interface Site {
  /** Host name of the dashboard, shown in the footer. */
  readonly publicHost: string
  readonly providers: readonly Provider[]
  /** Whether people may have passwords. If not, only providers are offered. */
  readonly hasPasswords: boolean
  /** URLs of the built stylesheets and scripts. */
  readonly styles: readonly string[]
  readonly scripts: readonly string[]
}

export interface DoorPage {
  /** Shown in the tab, before the name of the program. */
  readonly title: string
  /** Content of `<main>`; begins with the heading. */
  readonly main: Html
  /** The browser goes to this URL at once. */
  readonly goTo?: string | undefined
}

/** @throws TypeError if `goTo` is not an absolute URL of the web */
export function door(site: Site, { title, main, goTo }: DoorPage): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="referrer" content="same-origin" />
        ${goTo !== undefined && html`<meta http-equiv="refresh" content="0;url=${webURL(goTo)}" />`}
        <title>${title} · Headgate</title>
        <link rel="icon" href="/icon.svg" type="image/svg+xml" />
        ${site.styles.map((url) => html`<link rel="stylesheet" href="${url}" />`)}
        ${site.scripts.map((url) => html`<script type="module" src="${url}"></script>`)}
      </head>
      <body>
        <div class="door">
          <header><a class="logo" href="/">${MARK}Headgate</a></header>
          <main>${main}</main>
          <footer>
            ${CANAL}
            <div><span>${site.publicHost}</span></div>
          </footer>
        </div>
      </body>
    </html>`
}

/** The URL in the form that browsers use, in which quotes and spaces are percent-encoded. */
function webURL(text: string): string {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) throw new TypeError('a page can only go on to an http or https URL')
  return url.href
}
