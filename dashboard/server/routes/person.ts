/** Routes of signed-in people below /api: who they are, and how they sign in. */
import { findCondition } from '#api/condition-list.ts'
import type { PersonsAccount } from '../accounts/accounts.ts'
import { type Answer, empty, json } from '../http/exchange.ts'
import { notFound, Refused } from '../http/refused.ts'
import {
  changeEmail,
  changePassword,
  linkProvider,
  type PasswordChange,
  rename,
  renewBackupCodes,
  setFirstPassword,
  signInMethods,
  startTwoFactor,
  turnOffTwoFactor,
  turnOnTwoFactor,
  unlinkProvider,
} from '../identity/person.ts'
import { prove, type Proving } from '../identity/proof.ts'
import type { Session } from '../identity/sessions.ts'
import type { AccountView, BackupCodes, LinkedProviders, LinkStart, Me, Sessions, TwoFactorStart } from '../page-data/people.ts'
import { EMAIL_ERRORS, PASSWORD_ERRORS } from '../pages/controls.ts'
import { jsonText, optionalText } from './fields.ts'
import type { MemberHandler, RouteDeps } from './route.ts'

export const getMe: MemberHandler = async (deps, _exchange, session) => json(await meOf(deps, session), session.cookies)

async function meOf({ identity, accounts, apiURL, clock, outage }: RouteDeps, { person }: Session): Promise<Me> {
  const [found, methods] = await Promise.all([accounts.of(person), signInMethods(identity, person)])
  const { providers, hasPasswords } = identity.settings
  const { id, name, email, createdAt } = person
  const downMs = outage?.sinceMs ?? (found.state === 'Unreachable' ? clock.now() : undefined)
  return {
    person: {
      id,
      name,
      email,
      createdAt,
      role: 'owner',
      hasPassword: methods.hasPassword,
      twoFactor: {
        isOn: person.hasTwoFactor,
        ...(person.hasTwoFactor && methods.backupCodesLeft !== undefined ? { backupCodesLeft: methods.backupCodesLeft } : {}),
      },
    },
    account: accountView(found),
    ...(downMs === undefined ? {} : { readOnlySince: new Date(downMs).toISOString() }),
    installation: { apiURL, providers: providers.map((one) => ({ id: one.id, name: one.name })), hasPasswords },
  }
}

function accountView(found: PersonsAccount): AccountView {
  if (found.state === 'Closed') return { state: 'Closed' }
  if (found.state === 'Unreachable') return { state: 'Unknown' }
  const { metadata, spec, status } = found.account
  const ready = findCondition(status?.conditions, 'Ready')
  return {
    state: spec.state,
    name: metadata.name,
    ...(spec.displayName === undefined ? {} : { displayName: spec.displayName }),
    plan: spec.planRef.name,
    isReady: ready?.status === 'True',
    ...(ready && ready.status !== 'True' ? { reason: ready.reason, message: ready.message } : {}),
  }
}

export const patchMe: MemberHandler = async (deps, exchange, session) => {
  const name = jsonText(exchange, 'name')
  if (!(await rename(deps.identity, session.person, name)))
    throw new Refused('invalid', 'The name cannot be stored.', { fields: { name: 'Write at most 63 characters on one line.' } })
  return json(await meOf(deps, { ...session, person: { ...session.person, name: name.trim() } }))
}

export const postSignOut: MemberHandler = async ({ identity, log }, { client, id }, session) => {
  const { person } = session
  await identity.sessions.end(person, (one) => one === session.id) // the library would hide a failure, and the session would stay
  const { cookies } = await identity.door.ask(client, 'POST /sign-out')
  log.info({ audit: 'person.sign-out', person: person.id, request: id }, 'a person signed out')
  return empty(204, cookies)
}

export const postConfirm: MemberHandler = async ({ identity, log }, exchange, session) => {
  const proof = { password: jsonText(exchange, 'password'), code: optionalText(exchange, 'code') }
  const done = await prove(identity, exchange.client, session, proof)
  if (done !== 'proven') {
    log.info({ audit: 'person.confirm-failed', person: session.person.id, request: exchange.id, outcome: done }, 'a confirmation failed')
    throw PROOF_REFUSALS[done]()
  }
  return empty()
}

const PROOF_REFUSALS: Readonly<Record<Exclude<Proving, 'proven'>, () => Refused>> = {
  'wrong-password': () => wrongProof('password', 'This password is wrong.'),
  'wrong-code': () => wrongProof('code', 'This code is wrong or was used.'),
  'sign-in': () => new Refused('conflict', 'Sign in again to confirm that it is you.'),
}

function wrongProof(field: 'password' | 'code', message: string): Refused {
  return new Refused('wrong-credentials', message, { fields: { [field]: message } })
}

export const postEmail: MemberHandler = async ({ identity, log }, exchange, { person }) => {
  const { outcome } = await changeEmail(identity, exchange.client, { person, input: jsonText(exchange, 'email') })
  if (outcome === 'invalid') throw new Refused('invalid', EMAIL_ERRORS.form.short, { fields: { email: EMAIL_ERRORS.form.long } })
  log.info({ audit: 'person.ask-email-change', person: person.id, request: exchange.id }, 'a person asked for a new address')
  return empty(202)
}

export const postPassword: MemberHandler = async ({ identity, log }, exchange, session) => {
  const current = optionalText(exchange, 'current')
  const next = jsonText(exchange, 'next')
  const change =
    current === undefined
      ? await setFirstPassword(identity, exchange.client, session.person, next)
      : await changePassword(identity, exchange.client, session.person, { current, next })
  log.info(
    { audit: 'person.change-password', person: session.person.id, request: exchange.id, outcome: change.outcome },
    'a password change',
  )
  return passwordAnswer(change)
}

function passwordAnswer(change: PasswordChange): Answer {
  if (change.outcome === 'changed') return empty(204, change.cookies)
  if (change.outcome === 'wrong')
    throw new Refused('wrong-credentials', 'The current password is wrong.', { fields: { current: 'This password is wrong.' } })
  throw new Refused('invalid', PASSWORD_ERRORS[change.problem].short, { fields: { next: PASSWORD_ERRORS[change.problem].long } })
}

export const getProviders: MemberHandler = async ({ identity }, _exchange, { person }) => {
  const { linked } = await signInMethods(identity, person)
  const providers = identity.settings.providers.map(({ id, name }) => {
    const linkedAt = linked.get(id)
    return linkedAt === undefined ? { id, name, isLinked: false } : { id, name, isLinked: true, linkedAt }
  })
  const body: LinkedProviders = { providers: providers.toSorted((a, b) => Number(b.isLinked) - Number(a.isLinked)) }
  return json(body)
}

export const postProviderLink: MemberHandler = async ({ identity }, exchange) => {
  const provider = providerOf(identity, exchange.params['provider'])
  const done = await linkProvider(identity, exchange.client, provider.id)
  if (done.outcome === 'unreachable') throw new Refused('unavailable', `${provider.name} does not answer.`, { retryAfter: 10 })
  const body: LinkStart = { url: done.url }
  return json(body, done.cookies)
}

export const deleteProvider: MemberHandler = async ({ identity, log }, exchange, { person }) => {
  const provider = providerOf(identity, exchange.params['provider'])
  if (!(await unlinkProvider(identity, exchange.client, person, provider)))
    throw new Refused('conflict', 'This is the only way to sign in. Set a password or link another provider first.')
  log.info({ audit: 'person.unlink', person: person.id, request: exchange.id, provider: provider.id }, 'a provider was unlinked')
  return empty()
}

function providerOf({ settings }: RouteDeps['identity'], id: string | undefined): RouteDeps['identity']['settings']['providers'][number] {
  const provider = settings.providers.find((one) => one.id === id)
  if (provider === undefined) throw notFound()
  return provider
}

export const getSessions: MemberHandler = async ({ identity }, _exchange, session) => {
  const all = (await identity.sessions.list(session.person)).map((one) => ({ ...one, isCurrent: one.id === session.id }))
  const order = (a: (typeof all)[number], b: (typeof all)[number]): number =>
    Number(b.isCurrent) - Number(a.isCurrent) || b.lastUsedAt.localeCompare(a.lastUsedAt)
  const body: Sessions = { sessions: all.toSorted(order) }
  return json(body)
}

export const deleteSession: MemberHandler = async ({ identity, log }, exchange, { person }) => {
  const ended = await identity.sessions.end(person, (id) => id === exchange.params['session'])
  if (ended === 0) throw notFound()
  log.info({ audit: 'session.end', person: person.id, request: exchange.id }, 'a session was ended')
  return empty()
}

export const postEndOthers: MemberHandler = async ({ identity, log }, exchange, session) => {
  await identity.sessions.end(session.person, (id) => id !== session.id)
  log.info({ audit: 'session.end-others', person: session.person.id, request: exchange.id }, 'all other sessions were ended')
  return empty()
}

export const postTwoFactorStart: MemberHandler = async ({ identity }, { client }) => {
  const done = await startTwoFactor(identity, client)
  if (done.outcome !== 'started') throw new Refused('conflict', 'Two-factor is on already.')
  const secret = new URL(done.uri).searchParams.get('secret') ?? ''
  const body: TwoFactorStart = { uri: done.uri, secret, backupCodes: done.backupCodes }
  return json(body)
}

export const postTwoFactorConfirm: MemberHandler = async ({ identity, log }, exchange, { person }) => {
  const done = await turnOnTwoFactor(identity, exchange.client, person, jsonText(exchange, 'code'))
  if (done.outcome === 'already-on') throw new Refused('conflict', 'Two-factor is on already.')
  if (done.outcome === 'wrong')
    throw new Refused('wrong-credentials', 'This code is wrong or too old.', {
      fields: { code: 'This code is wrong or too old. Type the current one.' },
    })
  log.info({ audit: 'two-factor.on', person: person.id, request: exchange.id }, 'two-factor was turned on')
  return empty(204, done.cookies)
}

export const postTwoFactorOff: MemberHandler = async ({ identity, log }, exchange, { person }) => {
  const done = await turnOffTwoFactor(identity, exchange.client, person)
  if (done.outcome === 'off') throw new Refused('conflict', 'Two-factor is off.')
  log.info({ audit: 'two-factor.off', person: person.id, request: exchange.id }, 'two-factor was turned off')
  return empty(204, done.cookies)
}

export const postBackupCodes: MemberHandler = async ({ identity, log }, exchange, { person }) => {
  const done = await renewBackupCodes(identity, exchange.client, person)
  if (done.outcome === 'off') throw new Refused('conflict', 'Two-factor is off.')
  log.info({ audit: 'two-factor.backup-codes', person: person.id, request: exchange.id }, 'new backup codes were made')
  const body: BackupCodes = { backupCodes: done.backupCodes }
  return json(body)
}
