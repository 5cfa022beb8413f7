/** Routes of keys and of the plan. The account comes from the session, and never from the request. */
import type { Account } from '#api/account.ts'
import { type Answer, json } from '../http/exchange.ts'
import { Refused } from '../http/refused.ts'
import { readKeyForm, readNewKey, refusedFields } from '../keys/key-form.ts'
import type { KeyView } from '../page-data/keys.ts'
import { jsonText } from './fields.ts'
import { ownAccount } from './own-account.ts'
import type { MemberHandler, RouteDeps } from './route.ts'

export const getKeys: MemberHandler = async (deps, _exchange, session) => json(deps.keys.list(await ownAccount(deps, session)))

export const getPlan: MemberHandler = async (deps, _exchange, session) => json(deps.keys.plan(await ownAccount(deps, session)))

export const getKey: MemberHandler = async (deps, { params }, session) =>
  json(await deps.keys.get(await ownAccount(deps, session), params['key'] ?? ''))

export const postKey: MemberHandler = async (deps, { body, id }, session) => {
  const form = readNewKey(body, deps.clock.now())
  const created = await deps.keys.create(await ownAccount(deps, session), form)
  deps.log.info({ audit: 'key.create', person: session.person.id, request: id, key: created.key.id }, 'a person made a key')
  return json(created)
}

export const patchKey: MemberHandler = async (deps, exchange, session) => {
  const form = readKeyForm(exchange.body, deps.clock.now())
  return await changed(deps, { exchange, session, audit: 'key.edit' }, (account, key) => deps.keys.edit(account, key, form))
}

export const postSuspend: MemberHandler = async (deps, exchange, session) =>
  await changed(deps, { exchange, session, audit: 'key.suspend' }, (account, key) => deps.keys.setState(account, key, 'Suspended'))

export const postResume: MemberHandler = async (deps, exchange, session) =>
  await changed(deps, { exchange, session, audit: 'key.resume' }, (account, key) => deps.keys.setState(account, key, 'Active'))

export const postRevoke: MemberHandler = async (deps, exchange, session) =>
  await changed(deps, { exchange, session, audit: 'key.revoke' }, async (account, key) => {
    const { name } = await deps.keys.get(account, key)
    if (jsonText(exchange, 'name').trim() !== name)
      throw new Refused('invalid', 'This is not the name of the key.', { fields: { name: `Write ${name} to confirm.` } })
    return await deps.keys.setState(account, key, 'Revoked')
  })

export const postReplace: MemberHandler = async (deps, { body, params, id }, session) => {
  const { overlapSeconds } = body
  if (typeof overlapSeconds !== 'number') throw refusedFields({ overlapSeconds: 'Choose how long the old value works.' })
  const replaced = await deps.keys.replace(await ownAccount(deps, session), params['key'] ?? '', overlapSeconds)
  deps.log.info(
    { audit: 'key.replace', person: session.person.id, request: id, key: replaced.key.id },
    'a person replaced the value of a key',
  )
  return json(replaced)
}

export const postEndFormer: MemberHandler = async (deps, exchange, session) =>
  await changed(deps, { exchange, session, audit: 'key.end-former' }, (account, key) => deps.keys.endFormerValue(account, key))

interface Change {
  readonly exchange: Parameters<MemberHandler>[1]
  readonly session: Parameters<MemberHandler>[2]
  readonly audit: string
}

async function changed(
  deps: RouteDeps,
  { exchange, session, audit }: Change,
  change: (account: Account, key: string) => Promise<KeyView>,
): Promise<Answer> {
  const view = await change(await ownAccount(deps, session), exchange.params['key'] ?? '')
  deps.log.info({ audit, person: session.person.id, request: exchange.id, key: view.id }, 'a person changed a key')
  return json(view)
}
