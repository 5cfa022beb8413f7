/**
 * `/verify`: where the link of a mail leads. Opening the link changes nothing, since programs that scan mails open links too: the button does.
 *
 * A link that was asked for in another browser also needs a password. Otherwise a stranger who signed up with the address of somebody else
 * would get in once the owner of the address opens the link.
 */
import {
  accountOfPassword,
  emailField,
  hidden,
  NEW_PASSWORD_HINT,
  passwordField,
  PASSWORD_ERRORS,
  pathWith,
  type EmailError,
  type PasswordError,
} from './controls.ts'
import { html, type Html } from './html.ts'
import { door, type Site } from './layout.ts'

interface Link {
  readonly token: string
  readonly address: string
}

export type VerifyView =
  /** The browser that signed up. */
  | (Link & { readonly state: 'same-browser' })
  /** Another browser: `password` is a new one. */
  | (Link & { readonly state: 'new-password'; readonly error?: PasswordError | undefined })
  /** Another browser, `?with=password`: `password` is the one from sign-up. The form sends `with=password` too. */
  | (Link & { readonly state: 'sign-up-password'; readonly isWrong?: boolean | undefined })
  /** Too old, used, or not one of ours. The form asks for a new link at `/check-your-mail`. */
  | { readonly state: 'dead'; readonly address?: string | undefined; readonly error?: EmailError | undefined }
  /** A new address for the account of the person who is signed in. */
  | (Link & { readonly state: 'new-address' })
  /** A new address, but nobody is signed in, or somebody else is (`signedInAs`). */
  | (Link & { readonly state: 'sign-in-first'; readonly signedInAs?: string | undefined })

export function verifyPage(site: Site, view: VerifyView): Html {
  switch (view.state) {
    case 'same-browser':
      return page(site, 'Verify your email', sameBrowser(view))
    case 'new-password':
      return page(site, 'Choose a password', newPassword(view))
    case 'sign-up-password':
      return page(site, 'Verify your email', signUpPassword(view))
    case 'dead':
      return door(site, {
        title: 'Link too old',
        main: html`<h1>This link no longer works</h1>
          ${dead(view)}`,
      })
    case 'new-address':
      return page(site, 'Verify your new email', newAddress(view))
    case 'sign-in-first':
      return page(site, 'Sign in first', signInFirst(view))
  }
}

function page(site: Site, heading: string, content: Html): Html {
  return door(site, {
    title: 'Verify email',
    main: html`<h1>${heading}</h1>
      ${content}`,
  })
}

type State<S extends VerifyView['state']> = Extract<VerifyView, { state: S }>

const VERIFY = html`<button class="button primary" type="submit">Verify email</button>`

function sameBrowser({ token, address }: State<'same-browser'>): Html {
  return html`<p class="lead">One click, and <b>${address}</b> is yours here.</p>
    <form class="form" method="post" action="/verify">${hidden({ token })} ${VERIFY}</form>
    <p class="aside">Not you? Close this page and nothing happens.</p>`
}

function newPassword({ token, address, error }: State<'new-password'>): Html {
  return html`<p class="lead">
      This link was asked for in another browser. So that nobody else can get into <b>${address}</b>, set a password now. It replaces the
      one from sign-up and ends all other sessions.
    </p>
    <form class="form" method="post" action="/verify" ${error && html` novalidate`}>
      ${hidden({ token })} ${accountOfPassword(address)}
      ${passwordField({
        label: 'New password',
        autocomplete: 'new-password',
        hint: NEW_PASSWORD_HINT,
        error: error && PASSWORD_ERRORS[error].long,
      })}
      ${VERIFY}
    </form>
    <p class="aside">
      Signed up yourself? <a href="${pathWith('/verify', { token, with: 'password' })}">Use the password from sign-up</a>
    </p>`
}

function signUpPassword({ token, address, isWrong }: State<'sign-up-password'>): Html {
  return html`<p class="lead">Type the password with which you signed up as <b>${address}</b>.</p>
    <form class="form" method="post" action="/verify">
      ${hidden({ token, with: 'password' })} ${accountOfPassword(address)}
      ${passwordField({
        autocomplete: 'current-password',
        error: isWrong === true ? 'This is not the password from sign-up. Try again, or set a new one.' : undefined,
      })}
      ${VERIFY}
    </form>
    <p class="aside">Not sure? <a href="${pathWith('/verify', { token })}">Set a new password</a></p>`
}

function dead({ address, error }: State<'dead'>): Html {
  return html`<p class="lead">It is older than 24 hours, was used before, or a newer one was sent. Ask for a new one.</p>
    <form class="form" method="post" action="/check-your-mail" ${error && html` novalidate`}>
      ${emailField({ value: address, error })}
      <button class="button primary" type="submit">Send a new link</button>
    </form>
    <p class="aside">Already verified? <a href="/sign-in">Sign in</a></p>`
}

function newAddress({ token, address }: State<'new-address'>): Html {
  return html`<p class="lead">From then on you sign in with <b>${address}</b>, and our mails go there. Your API keys go on working.</p>
    <form class="form" method="post" action="/verify">${hidden({ token })} ${VERIFY}</form>
    <p class="aside">Not you? Close this page and nothing happens.</p>`
}

function signInFirst({ token, address, signedInAs }: State<'sign-in-first'>): Html {
  const who =
    signedInAs === undefined
      ? html`Sign in as the person who asked for the change.`
      : html`This browser is signed in as <b>${signedInAs}</b>, who did not ask for the change. Sign in as the person who did.`
  return html`<p class="lead">This link changes the email of an account to <b>${address}</b>. ${who}</p>
    <div class="choices">
      <a class="button primary" href="${pathWith('/sign-in', { next: pathWith('/verify', { token }) })}">Sign in</a>
    </div>
    <p class="aside">Not you? Close this page and nothing happens.</p>`
}
