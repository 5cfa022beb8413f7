/** The parts of the pages before sign-in: fields, banners, buttons. A message stands at the field that it belongs to. */
import { html, type Html, type HtmlValue } from './html.ts'
import { providerIcon } from './icons.ts'
import type { Site } from './layout.ts'
import { counted } from './utc-time.ts'

export interface Banner {
  readonly tone: 'info' | 'ok' | 'warn' | 'danger'
  readonly title: HtmlValue
  readonly text?: HtmlValue
  /** Read out at once. Otherwise the banner is read in turn. */
  readonly isAlert?: boolean
  readonly id?: string
}

export function banner({ tone, title, text, isAlert, id }: Banner): Html {
  const named = id !== undefined && html` id="${id}"`
  return html`<div class="banner ${tone}" role="${isAlert ? 'alert' : 'status'}" ${named}>
    <div><b>${title}</b>${text !== undefined && html`<p>${text}</p>`}</div>
  </div>`
}

export interface Field {
  /** Name of the field in the form, and its id. */
  readonly name: 'email' | 'password' | 'code'
  readonly label: string
  /** Attributes of the input, beside those of every field. */
  readonly attributes: Html
  /** The control after the input, inside of the same box. */
  readonly inside?: Html
  readonly hint?: string | undefined
  /** Replaces the hint, and takes the focus unless `isFocused` is false. */
  readonly error?: string | undefined
  readonly isFocused?: boolean | undefined
  /** Id of another text that describes the field. */
  readonly describedBy?: string | undefined
}

export function field({ name, label, attributes, inside, hint, error, isFocused = error !== undefined, describedBy }: Field): Html {
  const help = error ?? hint
  const description = help === undefined ? describedBy : `${name}-help`
  const state = [
    description !== undefined && html` aria-describedby="${description}"`,
    error !== undefined && html` aria-invalid="true"`,
    isFocused && html` autofocus`,
  ]
  const input = html`<input id="${name}" name="${name}" ${attributes} required${state} />`
  return html`<div class="field">
    <label for="${name}">${label}</label>
    ${inside === undefined ? input : html`<div class="affix has-inside">${input}${inside}</div>`}
    ${help !== undefined && html`<p class="${error === undefined ? 'hint' : 'error'}" id="${name}-help">${help}</p>`}
  </div>`
}

/** Why an address was refused. */
export type EmailError = 'form'

/** As link text of a summary, and at the field. */
export const EMAIL_ERRORS: Readonly<Record<EmailError, { readonly short: string; readonly long: string }>> = {
  form: { short: 'Email is not a whole address', long: 'Write the whole address, like name@company.example.' },
}

export interface EmailField {
  readonly value?: string | undefined
  readonly error?: EmailError | undefined
  readonly isFocused?: boolean | undefined
}

export function emailField({ value = '', error, isFocused }: EmailField = {}): Html {
  const attributes = html`class="input" type="email" autocomplete="username" spellcheck="false" value="${value}"`
  return field({ name: 'email', label: 'Email', attributes, error: error && EMAIL_ERRORS[error].long, isFocused })
}

/** Why a new password was refused. */
export type PasswordError = 'too-short' | 'too-long' | 'too-common'

export const PASSWORD_ERRORS: Readonly<Record<PasswordError, { readonly short: string; readonly long: string }>> = {
  'too-short': { short: 'Password is too short', long: 'Write at least 12 characters. A few words make a good password.' },
  'too-long': { short: 'Password is too long', long: 'Write at most 128 characters.' },
  'too-common': {
    short: 'Password is a common one',
    long: 'This password is on a list of common ones. Choose another with at least 12 characters.',
  },
}

export interface PasswordField {
  readonly label?: string
  /** `new-password` lets a password manager propose one. */
  readonly autocomplete: 'current-password' | 'new-password'
  readonly hint?: string
  readonly error?: string | undefined
  readonly isFocused?: boolean | undefined
  readonly describedBy?: string | undefined
}

/** The page never holds a password, also not one that was just typed. A script shows the button. */
export function passwordField({ label = 'Password', autocomplete, ...rest }: PasswordField): Html {
  const attributes = html`class="input" type="password" autocomplete="${autocomplete}"`
  const show = html`<button class="button quiet compact inside" type="button" aria-pressed="false" data-show-password="password" hidden>
    Show<span class="visually-hidden"> password</span>
  </button>`
  return field({ name: 'password', label, attributes, inside: show, ...rest })
}

export const NEW_PASSWORD_HINT = 'At least 12 characters.'

/** The address of the account for a password manager, beside a field for a password. The link decides the account, so a route ignores this field. */
export function accountOfPassword(address: string | undefined): Html | undefined {
  if (address === undefined) return undefined
  return html`<input
    class="visually-hidden"
    type="email"
    name="email"
    autocomplete="username"
    value="${address}"
    tabindex="-1"
    aria-hidden="true"
    readonly
  />`
}

/** Hidden inputs, one for each value that is there. */
export function hidden(values: Readonly<Record<string, string | undefined>>): Html {
  const present = Object.entries(values).filter(([, value]) => value !== undefined)
  return html`${present.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}`
}

/** Goes on to a page of this site after the form. */
export interface Next {
  readonly next?: string | undefined
}

/** Path with the query parameters that are there. */
export function pathWith(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const present = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]))
  return present.length === 0 ? path : `${path}?${present.join('&')}`
}

/** A form for each provider, and the line between them and the form for a password. */
export function providerForms(site: Site, { next }: Next): Html {
  const forms = site.providers.map(
    ({ id, name }) =>
      html`<form method="post" action="${`/sign-in/${encodeURIComponent(id)}`}">
        ${hidden({ next })}<button class="button" type="submit">${providerIcon(id)}Continue with ${name}</button>
      </form>`,
  )
  const isAlone = !site.hasPasswords
  return html`${forms.length > 0 && html`<div class="providers">${forms}</div>`}
  ${forms.length > 0 && !isAlone && html`<div class="or">or</div>`}
  ${forms.length === 0 && isAlone && html`<p>No way to sign in is set up here. Ask your administrator.</p>`}`
}

/** The button that asks for another mail. It waits for its countdown; a script counts and enables the button. */
export function sendAgain(seconds: number): Html {
  if (seconds <= 0) return html`<button class="button" type="submit">Send again</button>`
  const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
  return html`<button class="button" type="submit" disabled data-countdown-seconds="${seconds}">Send again in ${clock}</button>`
}

/** The note below a form whose button counts down, for screen readers and for people without JavaScript. */
export function waitingNote(seconds: number): Html | undefined {
  if (seconds <= 0) return undefined
  const wait = seconds < 60 ? 'less than a minute' : counted(Math.ceil(seconds / 60), 'minute')
  return html`<p class="visually-hidden" role="status">You can ask for another mail in ${wait}.</p>
    <noscript><p class="aside">After that time, load this page again to ask for another mail.</p></noscript>`
}
