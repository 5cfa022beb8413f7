/**
 * The way to a provider. The content policy `form-action 'self'` also forbids that a form is answered by a redirect to another site, so the
 * answer is this page (200), which goes on by itself.
 */
import { html, type Html } from './html.ts'
import { door, type Site } from './layout.ts'

export interface RedirectView {
  /** Absolute URL at the provider. */
  readonly url: string
  /** Name for people: `GitHub`. */
  readonly provider: string
}

/** @throws TypeError if `url` is not an http or https URL */
export function redirectPage(site: Site, { url, provider }: RedirectView): Html {
  const main = html`<h1>On to ${provider}</h1>
    <p class="lead">Your browser opens ${provider}, and ${provider} leads back here.</p>
    <div class="choices"><a class="button" href="${url}">Continue with ${provider}</a></div>`
  return door(site, { title: `Continue with ${provider}`, main, goTo: url })
}
