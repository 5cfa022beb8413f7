/** `/sign-in`: providers, then address and password. */
import { emailField, hidden, passwordField, pathWith, providerForms, type Next } from './controls.ts'
import { html, type Html } from './html.ts'
import { door, type Site } from './layout.ts'
import { CREDENTIALS_NOTICE_ID, signInBanner, signInHeading, type SignInNotice } from './sign-in-notice.ts'

export interface SignInView extends Next {
  /** The address that was typed, or that is known. */
  readonly email?: string | undefined
  readonly notice?: SignInNotice | undefined
}

export function signInPage(site: Site, view: SignInView = {}): Html {
  const { notice, next } = view
  const { tab, title, lead } = signInHeading(notice, next)
  const main = html`<h1>${title}</h1>
    ${lead !== undefined && html`<p class="lead">${lead}</p>`} ${notice && signInBanner(site, notice)} ${providerForms(site, view)}
    ${site.hasPasswords && passwordForm(view)}`
  return door(site, { title: tab, main })
}

function passwordForm({ email, next, notice }: SignInView): Html {
  const isWrong = notice?.kind === 'wrong-credentials'
  const describedBy = isWrong ? CREDENTIALS_NOTICE_ID : undefined
  return html`<form class="form" method="post" action="/sign-in">
      ${hidden({ next })} ${emailField({ value: email })}
      ${passwordField({ autocomplete: 'current-password', describedBy, isFocused: isWrong })}
      <button class="button primary" type="submit">Sign in</button>
    </form>
    <p class="aside"><a href="/reset">Forgot your password?</a></p>
    <p class="aside">New here? <a href="${pathWith('/sign-up', { next })}">Sign up</a></p>`
}
