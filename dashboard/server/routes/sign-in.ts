/** Sign-in: by password, by code, through providers, and by a new password. */
import { page, redirect } from '../http/exchange.ts'
import { ownPath } from '../http/own-path.ts'
import { notFound } from '../http/refused.ts'
import { readResetLink, requestReset, reset } from '../identity/reset.ts'
import { finishProvider, signIn, signInByCode, startProvider } from '../identity/sign-in.ts'
import { pathWith } from '../pages/controls.ts'
import { redirectPage } from '../pages/redirect.ts'
import { deadResetLinkPage, newPasswordPage, resetPage, resetSentPage } from '../pages/reset.ts'
import { type ProviderError, providerErrorOf, type SignInNotice, signInReasonOf } from '../pages/sign-in-notice.ts'
import { signInPage } from '../pages/sign-in.ts'
import { twoFactorPage, WITH_BACKUP_CODE } from '../pages/two-factor.ts'
import { ensureAccount } from './ensure-account.ts'
import { formText } from './fields.ts'
import type { OpenHandler, RouteDeps } from './route.ts'

const RESEND_SECONDS = 60

export const showSignIn: OpenHandler = async ({ identity, site }, { client, query }) => {
  const notice = noticeOf(query)
  const next = ownPath(query.get('next'))
  if (notice === undefined && (await identity.sessions.read(client)) !== undefined) return redirect(next ?? '/')
  return page(signInPage(site, { next, notice }))
}

function noticeOf(query: URLSearchParams): SignInNotice | undefined {
  const reason = signInReasonOf(query.get('reason'))
  if (reason !== undefined) return { kind: reason }
  const error = query.get('error')
  return error === null
    ? undefined
    : { kind: 'provider-error', error: providerErrorOf(error), provider: query.get('provider') ?? undefined }
}

export const postSignIn: OpenHandler = async (deps, exchange) => {
  const { identity, site, log, metrics } = deps
  const [email, password] = [formText(exchange, 'email'), formText(exchange, 'password')]
  const next = ownPath(exchange.body['next'])
  const done = await signIn(identity, exchange.client, { email, password })
  switch (done.outcome) {
    case 'signed-in':
      await signedIn(deps, done.userId, { request: exchange.id, by: 'password' })
      return redirect(next ?? '/', done.cookies)
    case 'code':
      return redirect(pathWith('/two-factor', { next }), done.cookies)
    case 'wrong':
      metrics.signIn('password', 'wrong')
      log.info({ audit: 'person.sign-in-failed', request: exchange.id }, 'a sign-in failed')
      return page(signInPage(site, { email, next, notice: { kind: 'wrong-credentials' } }), { status: 403 })
  }
}

export const showTwoFactor: OpenHandler = async ({ site }, { query }) =>
  page(twoFactorPage(site, { method: query.get('with') === WITH_BACKUP_CODE ? 'backup-code' : 'app', next: ownPath(query.get('next')) }))

export const postTwoFactor: OpenHandler = async (deps, exchange) => {
  const isBackup = formText(exchange, 'with') === WITH_BACKUP_CODE
  const next = ownPath(exchange.body['next'])
  const done = await signInByCode(deps.identity, exchange.client, formText(exchange, 'code'), isBackup ? 'backup' : 'app')
  switch (done.outcome) {
    case 'signed-in':
      await signedIn(deps, done.userId, { request: exchange.id, by: isBackup ? 'backup code' : 'code' })
      return redirect(next ?? '/', done.cookies)
    case 'start-again':
      return redirect(pathWith('/sign-in', { reason: 'two-factor-ended', next }))
    case 'wrong':
    case 'used':
      deps.metrics.signIn(isBackup ? 'backup code' : 'code', 'wrong')
      return page(twoFactorPage(deps.site, { method: isBackup ? 'backup-code' : 'app', next, error: done.outcome }), { status: 403 })
  }
}

export const postProvider: OpenHandler = async ({ identity, site }, exchange) => {
  const id = exchange.params['provider'] ?? ''
  const provider = identity.settings.providers.find((one) => one.id === id)
  if (provider === undefined) throw notFound()
  const next = ownPath(exchange.body['next'])
  const done = await startProvider(identity, exchange.client, id, next ?? '/')
  if (done.outcome !== 'go') {
    const error: ProviderError = 'provider_unreachable'
    return page(signInPage(site, { next, notice: { kind: 'provider-error', error, provider: id } }), { status: 503 })
  }
  return page(redirectPage(site, { url: done.url, provider: provider.name }), { cookies: done.cookies })
}

/** Where the provider sends the browser. The path is registered at the provider. */
export const getCallback: OpenHandler = async (deps, exchange) => {
  const { identity } = deps
  const id = exchange.params['provider'] ?? ''
  const provider = identity.settings.providers.find((one) => one.id === id)
  if (provider === undefined) throw notFound()
  const { path, cookies, userId, linkedTo } = await finishProvider(identity, exchange.client, provider, Object.fromEntries(exchange.query))
  if (userId !== undefined) await signedIn(deps, userId, { request: exchange.id, by: id })
  if (linkedTo !== undefined)
    deps.log.info({ audit: 'person.link', person: linkedTo, request: exchange.id, provider: id }, 'a provider was linked')
  return redirect(path, cookies)
}

export const showReset: OpenHandler = async ({ site }) => page(resetPage(site))

export const postReset: OpenHandler = async ({ identity, site }, exchange) => {
  const typed = formText(exchange, 'email')
  const done = await requestReset(identity, exchange.client, typed)
  if (done.outcome === 'invalid') return page(resetPage(site, { email: typed, error: 'form' }), { status: 422 })
  return page(resetSentPage(site, { address: done.email, secondsUntilResend: RESEND_SECONDS }))
}

export const showNewPassword: OpenHandler = async ({ identity, site }, { query }) => {
  const token = query.get('token') ?? ''
  const link = await readResetLink(identity, token)
  return page(link === undefined ? deadResetLinkPage(site) : newPasswordPage(site, { token, address: link.email }))
}

export const postNewPassword: OpenHandler = async ({ identity, site, log }, exchange) => {
  const token = formText(exchange, 'token')
  const done = await reset(identity, exchange.client, token, formText(exchange, 'password'))
  switch (done.outcome) {
    case 'set':
      log.info({ audit: 'person.reset-password', request: exchange.id }, 'a password was set by a link')
      return redirect('/sign-in?reason=password-set')
    case 'invalid':
      return page(newPasswordPage(site, { token, address: done.email, error: done.problem }), { status: 422 })
    case 'dead':
      return page(deadResetLinkPage(site), { status: 422 })
  }
}

async function signedIn(
  deps: RouteDeps,
  person: string,
  { request, by }: { readonly request: string; readonly by: string },
): Promise<void> {
  deps.metrics.signIn(by, 'signed-in')
  deps.log.info({ audit: 'person.sign-in', person, request, by }, 'a person signed in')
  await ensureAccount(deps, person)
}
