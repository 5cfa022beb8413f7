/** `/two-factor`: the second step of a sign-in, by a code of the authenticator app or by a backup code. */
import { field, hidden, pathWith, type Next } from './controls.ts'
import { html, type Html } from './html.ts'
import { door, type Site } from './layout.ts'

/** The query parameter `with`, and the hidden field `with` of the form, for a backup code. The app has no such parameter. */
export const WITH_BACKUP_CODE = 'backup-code'

export interface TwoFactorView extends Next {
  readonly method: 'app' | 'backup-code'
  /** `used`: the code was right, but has signed in before. */
  readonly error?: 'wrong' | 'used' | undefined
}

export function twoFactorPage(site: Site, view: TwoFactorView): Html {
  const { heading, lead } = WORDS[view.method]
  const main = html`<h1>${heading}</h1>
    <p class="lead">${lead}</p>
    <form class="form" method="post" action="/two-factor">
      ${hidden({ next: view.next, with: view.method === 'app' ? undefined : WITH_BACKUP_CODE })} ${codeField(view)}
      <button class="button primary" type="submit">Sign in</button>
    </form>
    <p class="aside">${otherMethod(view)}</p>
    <p class="aside"><a href="${pathWith('/sign-in', { next: view.next })}">Sign in as someone else</a></p>`
  return door(site, { title: 'Two-factor sign-in', main })
}

/** No `maxlength`: a pasted "123 456" would lose its end. */
function codeField({ method, error }: TwoFactorView): Html {
  const attributes =
    method === 'app'
      ? html`class="input mono" inputmode="numeric" autocomplete="one-time-code" spellcheck="false"`
      : html`class="input mono" autocomplete="off" autocapitalize="none" spellcheck="false"`
  const { label, errors } = WORDS[method]
  return field({ name: 'code', label, attributes, error: error && errors[error] })
}

function otherMethod({ method, next }: TwoFactorView): Html {
  return method === 'app'
    ? html`<a href="${pathWith('/two-factor', { with: WITH_BACKUP_CODE, next })}">Use a backup code</a>`
    : html`<a href="${pathWith('/two-factor', { next })}">Use your authenticator app</a>`
}

const WORDS = {
  app: {
    heading: 'Enter your code',
    lead: 'Open your authenticator app and type the six digits for Headgate.',
    label: 'Code',
    errors: {
      wrong: 'This code is wrong or too old. Type the one that the app shows now.',
      used: 'This code has been used. Wait for the next one.',
    },
  },
  'backup-code': {
    heading: 'Enter a backup code',
    lead: 'Type one of the codes that you kept when you turned two-factor sign-in on. Each works once.',
    label: 'Backup code',
    errors: {
      wrong: 'This backup code is wrong, or has been used. Try another one.',
      used: 'This backup code has been used. Try another one.',
    },
  },
} as const
