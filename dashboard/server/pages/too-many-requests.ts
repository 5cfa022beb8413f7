/** The page of a form that was sent too often (429). The sign-in page has its own notice for that. */
import { html, type Html } from './html.ts'
import { door, type Site } from './layout.ts'
import { counted } from './utc-time.ts'

export interface TooManyRequestsView {
  /** Whole seconds, as in the header Retry-After. */
  readonly secondsToWait: number
  /** Path of the page with the form. */
  readonly tryAgain: string
}

export function tooManyRequestsPage(site: Site, { secondsToWait: seconds, tryAgain }: TooManyRequestsView): Html {
  const wait = seconds < 60 ? counted(Math.max(1, seconds), 'second') : counted(Math.ceil(seconds / 60), 'minute')
  const main = html`<h1>Too many tries</h1>
    <p class="lead">Wait ${wait}, then try again. Nothing was changed. Your API keys go on working.</p>
    <div class="choices"><a class="button" href="${tryAgain}">Try again</a></div>
    <p class="aside"><a href="/sign-in">Back to sign-in</a></p>`
  return door(site, { title: 'Too many tries', main })
}
