/** Sign-up, and the proof of the address. */
import { type Answer, page, redirect } from '../http/exchange.ts'
import { ownPath } from '../http/own-path.ts'
import { emailOf, proofOf, sendAgain, signUp } from '../identity/sign-up.ts'
import { type LinkState, readLink, type Verification, verify } from '../identity/verify.ts'
import { checkYourMailPage } from '../pages/check-your-mail.ts'
import { pathWith } from '../pages/controls.ts'
import { signUpPage } from '../pages/sign-up.ts'
import { verifyPage, type VerifyView } from '../pages/verify.ts'
import { ensureAccount } from './ensure-account.ts'
import { formText } from './fields.ts'
import type { OpenHandler, RouteDeps } from './route.ts'

const RESEND_SECONDS = 60
const MAILS_A_DAY = 5

export const showSignUp: OpenHandler = async ({ site }, { query }) => page(signUpPage(site, { next: ownPath(query.get('next')) }))

export const postSignUp: OpenHandler = async ({ identity, site, log, metrics }, exchange) => {
  const [email, password] = [formText(exchange, 'email'), formText(exchange, 'password')]
  const next = ownPath(exchange.body['next'])
  const done = await signUp(identity, exchange.client, { email, password })
  if (done.outcome === 'invalid') return page(signUpPage(site, { email, next, errors: done.errors }), { status: 422 })
  metrics.signUp('posted')
  log.info({ audit: 'person.sign-up', request: exchange.id }, 'somebody signed up')
  return redirect(pathWith('/check-your-mail', { next }), done.cookies)
}

export const showCheckYourMail: OpenHandler = async ({ identity, site }, { client, query }) => {
  const proof = proofOf(identity, client)
  if (proof === undefined) return redirect('/sign-up')
  const view = { address: proof.email, secondsUntilResend: RESEND_SECONDS, leftToday: MAILS_A_DAY - 1, next: ownPath(query.get('next')) }
  return page(checkYourMailPage(site, view))
}

export const postCheckYourMail: OpenHandler = async ({ identity, site }, exchange) => {
  const typed = formText(exchange, 'email')
  const address = emailOf(typed)
  if (address === undefined) return page(verifyPage(site, { state: 'dead', address: typed, error: 'form' }), { status: 422 })
  const { isSent, left, retryAfter } = await sendAgain(identity, exchange.client, address)
  const next = ownPath(exchange.body['next'])
  // a browser that did not sign up must not learn whether somebody else did
  if (proofOf(identity, exchange.client)?.email !== address)
    return page(checkYourMailPage(site, { address, secondsUntilResend: RESEND_SECONDS, wasResent: true, next }))
  return page(checkYourMailPage(site, { address, secondsUntilResend: retryAfter, wasResent: isSent, leftToday: isSent ? left : 1, next }))
}

export const showVerify: OpenHandler = async ({ identity, site }, { client, query }) => {
  const token = query.get('token') ?? ''
  const link = await readLink(identity, client, token)
  return page(verifyPage(site, viewOf(link, token, query.get('with') === 'password')))
}

export const postVerify: OpenHandler = async (deps, exchange) => {
  const [token, password] = [formText(exchange, 'token'), formText(exchange, 'password')]
  const isKnown = formText(exchange, 'with') === 'password'
  const other = password === '' ? undefined : ({ kind: isKnown ? 'known' : 'new', password } as const)
  const done = await verify(deps.identity, exchange.client, { token, other })
  return await answerOf(deps, { exchange, token, isKnown, done })
}

interface Posted {
  readonly exchange: Parameters<OpenHandler>[1]
  readonly token: string
  readonly isKnown: boolean
  readonly done: Verification
}

async function answerOf(deps: RouteDeps, { exchange, token, isKnown, done }: Posted): Promise<Answer> {
  const { identity, site, log, metrics } = deps
  switch (done.outcome) {
    case 'verified':
      metrics.signUp('verified')
      log.info({ audit: 'person.verify', person: done.userId, request: exchange.id }, 'a person verified the address')
      await ensureAccount(deps, done.userId)
      return redirect('/', done.cookies)
    case 'changed':
      log.info({ audit: 'person.change-email', person: done.userId, request: exchange.id }, 'a person changed the address')
      await ensureAccount(deps, done.userId)
      return redirect('/settings', done.cookies)
    case 'refused':
      return page(verifyPage(site, viewOf(done.link, token, isKnown)), { status: 422 })
    case 'invalid':
    case 'wrong-password': {
      const link = await readLink(identity, exchange.client, token)
      const view = viewOf(link, token, isKnown)
      const shown: VerifyView =
        view.state === 'new-password' && done.outcome === 'invalid'
          ? { ...view, error: done.problem }
          : view.state === 'sign-up-password'
            ? { ...view, isWrong: true }
            : view
      return page(verifyPage(site, shown), { status: 422 })
    }
  }
}

function viewOf(link: LinkState, token: string, isKnown: boolean): VerifyView {
  switch (link.state) {
    case 'ready':
      return { state: 'same-browser', token, address: link.email }
    case 'other-browser':
      return { state: isKnown ? 'sign-up-password' : 'new-password', token, address: link.email }
    case 'change':
      return { state: 'new-address', token, address: link.email }
    case 'sign-in-first':
      return { state: 'sign-in-first', token, address: link.email }
    case 'dead':
      return { state: 'dead' }
  }
}
