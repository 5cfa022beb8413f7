/** The page of a form that was sent from a page too old to be trusted (403). It leads on to where the person was. */
import { html, type Html } from './html.ts'
import { door, type Site } from './layout.ts'

export interface FormExpiredView {
  /** Path of the page with the form. */
  readonly goOn: string
}

export function formExpiredPage(site: Site, { goOn }: FormExpiredView): Html {
  const main = html`<h1>This page was open for too long</h1>
    <p class="lead">What you sent was not taken, and nothing was changed. Open the page again and send the form once more.</p>
    <div class="choices"><a class="button primary" href="${goOn}">Open it again</a></div>
    <p class="aside"><a href="/sign-in">Back to sign-in</a></p>`
  return door(site, { title: 'Page too old', main })
}
