/** `/reset` asks for a link, and `/reset/new` is where the link leads. The answer is the same for known and unknown addresses. */
import {
  accountOfPassword,
  emailField,
  hidden,
  NEW_PASSWORD_HINT,
  passwordField,
  PASSWORD_ERRORS,
  sendAgain,
  waitingNote,
  type EmailError,
  type PasswordError,
} from './controls.ts'
import { html, type Html } from './html.ts'
import { door, type Site } from './layout.ts'

export interface ResetView {
  readonly email?: string | undefined
  readonly error?: EmailError | undefined
}

export function resetPage(site: Site, { email, error }: ResetView = {}): Html {
  const main = html`<h1>Reset your password</h1>
    <p class="lead">We will send a link to your address. It works once, for 30 minutes.</p>
    ${askForm(email, error, 'Send reset link')}
    <p class="aside"><a href="/sign-in">Back to sign-in</a></p>`
  return door(site, { title: 'Reset password', main })
}

export interface ResetSentView {
  readonly address: string
  /** Whole seconds until another mail may be asked for; 0 or less: now. */
  readonly secondsUntilResend: number
}

export function resetSentPage(site: Site, { address, secondsUntilResend: seconds }: ResetSentView): Html {
  const main = html`<h1>Check your mail</h1>
    <p class="lead">If <b>${address}</b> has an account here, a link is on its way. It works once, for 30 minutes.</p>
    <form class="form" method="post" action="/reset">${hidden({ email: address })} ${sendAgain(seconds)}</form>
    <p class="aside"><a href="/sign-in">Back to sign-in</a></p>
    ${waitingNote(seconds)}`
  return door(site, { title: 'Check your mail', main })
}

export interface NewPasswordView {
  readonly token: string
  /** Absent where the address of a link is not known before its use. */
  readonly address?: string | undefined
  readonly error?: PasswordError | undefined
}

export function newPasswordPage(site: Site, { token, address, error }: NewPasswordView): Html {
  const main = html`<h1>Set a new password</h1>
    <p class="lead">${address !== undefined && html`For <b>${address}</b>. `}All other sessions end. Your API keys go on working.</p>
    <form class="form" method="post" action="/reset/new" ${error && html` novalidate`}>
      ${hidden({ token })} ${accountOfPassword(address)}
      ${passwordField({
        label: 'New password',
        autocomplete: 'new-password',
        hint: NEW_PASSWORD_HINT,
        error: error && PASSWORD_ERRORS[error].long,
      })}
      <button class="button primary" type="submit">Set password</button>
    </form>`
  return door(site, { title: 'Set a new password', main })
}

/** The link is too old, was used, or is not one of ours. */
export function deadResetLinkPage(site: Site, { email, error }: ResetView = {}): Html {
  const main = html`<h1>This link no longer works</h1>
    <p class="lead">It is older than 30 minutes, was used before, or the password was set by another link. Ask for a new one.</p>
    ${askForm(email, error, 'Send a new link')}
    <p class="aside"><a href="/sign-in">Back to sign-in</a></p>`
  return door(site, { title: 'Link too old', main })
}

function askForm(email: string | undefined, error: EmailError | undefined, button: string): Html {
  return html`<form class="form" method="post" action="/reset" ${error && html` novalidate`}>
    ${emailField({ value: email, error })}
    <button class="button primary" type="submit">${button}</button>
  </form>`
}
