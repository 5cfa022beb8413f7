/** The page for an answer that could not be given: a failure of ours, or more work than the server accepts. */
import { html, type Html } from './html.ts'
import { door, type Site } from './layout.ts'
import { utcTime } from './utc-time.ts'

export interface ErrorView {
  /**
   * `busy`: too many passwords are being checked at once (503). `outage`: the database or the cluster does not answer (503). `internal`: a failure
   * of ours (500).
   */
  readonly kind: 'internal' | 'busy' | 'outage'
  readonly requestID: string
  readonly at: Date
  /** Path of the page to open again. */
  readonly tryAgain: string
}

export function errorPage(site: Site, view: ErrorView): Html {
  const { tab, heading, lead } = WORDS[view.kind]
  const main = html`<h1>${heading}</h1>
    <p class="lead">${lead} Your keys go on working: the API does not depend on this page.</p>
    <div class="choices">
      <a class="button primary" href="${view.tryAgain}">Try again</a>
      <a class="button" href="/">Go to Overview</a>
    </div>
    ${requestField(view)}`
  return door(site, { title: tab, main })
}

const WORDS = {
  internal: { tab: 'Something went wrong', heading: 'Something went wrong on our side', lead: 'Try again in a moment.' },
  outage: {
    tab: 'No answer',
    heading: 'A part of the dashboard does not answer',
    lead: 'Nothing is lost. Try again in a few seconds.',
  },
  busy: { tab: 'Busy', heading: 'Sign-in is busy right now', lead: 'Nothing was changed. Try again in a few seconds.' },
} as const

/** The number that leads to the log. A script shows the button. */
function requestField({ requestID, at }: ErrorView): Html {
  return html`<div class="field">
    <label for="request-id">Request id</label>
    <div class="affix has-inside">
      <input class="input mono" id="request-id" readonly value="${requestID}" aria-describedby="request-help" />
      <button class="button quiet compact inside" type="button" data-copy="request-id" hidden>Copy</button>
    </div>
    <p class="hint" id="request-help">
      Give it to your administrator. It leads to the log of this moment:
      <time datetime="${at.toISOString()}">${utcTime(at, 'seconds')}</time>.
    </p>
  </div>`
}
