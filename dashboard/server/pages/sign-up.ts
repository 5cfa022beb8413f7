/** `/sign-up`: providers, then address and password. */
import {
  emailField,
  EMAIL_ERRORS,
  hidden,
  passwordField,
  PASSWORD_ERRORS,
  pathWith,
  providerForms,
  type EmailError,
  type Next,
  type PasswordError,
} from './controls.ts'
import { html, type Html } from './html.ts'
import { door, type Site } from './layout.ts'

export interface SignUpView extends Next {
  readonly email?: string | undefined
  readonly errors?: { readonly email?: EmailError | undefined; readonly password?: PasswordError | undefined } | undefined
}

export function signUpPage(site: Site, view: SignUpView = {}): Html {
  const main = html`<h1>Create your account</h1>
    <p class="lead">For keys, usage and billing. Programs sign in with keys, never with this account.</p>
    ${summary(view)} ${providerForms(site, view)} ${site.hasPasswords && signUpForm(view)}
    <p class="aside">Have an account? <a href="${pathWith('/sign-in', { next: view.next })}">Sign in</a></p>`
  return door(site, { title: 'Sign up', main })
}

function signUpForm({ email, next, errors = {} }: SignUpView): Html {
  const hasSummary = errors.email !== undefined && errors.password !== undefined
  const isFocused = hasSummary ? false : undefined
  return html`<form class="form" method="post" action="/sign-up" ${errors.email && html` novalidate`}>
    ${hidden({ next })} ${emailField({ value: email, error: errors.email, isFocused })}
    ${passwordField({
      autocomplete: 'new-password',
      hint: 'At least 12 characters. A few words make a good one.',
      error: errors.password && PASSWORD_ERRORS[errors.password].long,
      isFocused,
    })}
    <button class="button primary" type="submit">Sign up</button>
  </form>`
}

/** Two errors have links of their own above the form. One error is at its field, which has the focus. */
function summary({ errors = {} }: SignUpView): Html | undefined {
  const { email, password } = errors
  if (email === undefined || password === undefined) return undefined
  return html`<div class="summary" role="alert" tabindex="-1" autofocus>
    <b>Two things to change</b>
    <a href="#email">${EMAIL_ERRORS[email].short}</a>
    <a href="#password">${PASSWORD_ERRORS[password].short}</a>
  </div>`
}
