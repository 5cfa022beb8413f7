/** `/check-your-mail`: after a sign-up, the same page for a new address and for a known one. */
import { banner, hidden, pathWith, sendAgain, waitingNote, type Next } from './controls.ts'
import { html, type Html } from './html.ts'
import { door, type Site } from './layout.ts'

export interface CheckYourMailView extends Next {
  readonly address: string
  /** Whole seconds until another mail may be asked for; 0 or less: now. */
  readonly secondsUntilResend: number
  /** Whether this page answers `Send again`. */
  readonly wasResent?: boolean | undefined
  /** Mails that this address may still ask for today. Absent where the browser may not know what others asked for. */
  readonly leftToday?: number | undefined
}

export function checkYourMailPage(site: Site, view: CheckYourMailView): Html {
  const { address, leftToday, next } = view
  const main = html`<h1>Check your mail</h1>
    <p class="lead">We sent a link to <b>${address}</b>. It works for 24 hours. Open it in this browser.</p>
    ${view.wasResent === true && banner({ tone: 'ok', title: 'Sent again', text: leftSentence(leftToday) })}
    ${leftToday === undefined || leftToday > 0 ? resendForm(view) : html`<p>No more mails can be sent to this address today. Ask for another one tomorrow.</p>`}
    <p class="aside">Nothing there? Look among unwanted mail, or <a href="${pathWith('/sign-up', { next })}">use another address</a>.</p>`
  return door(site, { title: 'Check your mail', main })
}

function resendForm({ address, secondsUntilResend: seconds, next }: CheckYourMailView): Html {
  return html`<form class="form" method="post" action="/check-your-mail">${hidden({ email: address, next })} ${sendAgain(seconds)}</form>
    ${waitingNote(seconds)}`
}

function leftSentence(left = 0): string {
  return left > 0 ? `The mail can take a minute. You can ask for ${left} more today.` : 'The mail can take a minute.'
}
