/** A person's own data: as a file, and its end. */
import { KubeError } from '#kube/port.ts'
import { empty, type Answer } from '../http/exchange.ts'
import { Refused } from '../http/refused.ts'
import { CREDENTIAL } from '../identity/credential.ts'
import { deletePerson, signInMethods } from '../identity/person.ts'
import { jsonText } from './fields.ts'
import type { MemberHandler } from './route.ts'

export const getExport: MemberHandler = async ({ identity, accounts, clock }, _exchange, { person }): Promise<Answer> => {
  const [methods, sessions, found] = await Promise.all([
    signInMethods(identity, person),
    identity.sessions.list(person),
    accounts.of(person),
  ])
  if (found.state === 'Unreachable') throw new KubeError('Unreachable', 0, 'the Account could not be read') // the file would say that there is none
  const { id, name, email, createdAt, hasTwoFactor } = person
  const content = {
    exportedAt: new Date(clock.now()).toISOString(),
    person: { id, name, email, isEmailVerified: true, createdAt, hasTwoFactor, hasPassword: methods.hasPassword },
    providers: [...methods.linked].filter(([provider]) => provider !== CREDENTIAL).map(([provider, linkedAt]) => ({ provider, linkedAt })),
    sessions,
    account:
      found.state === 'Found'
        ? { metadata: { name: found.account.metadata.name }, spec: found.account.spec, status: found.account.status }
        : null,
  }
  return { kind: 'file', name: 'headgate-data.json', type: 'application/json', content: `${JSON.stringify(content, null, 2)}\n` }
}

/**
 * Suspends the Account first, which stops its keys, then deletes the person. The mark in the members' table lets the sweep finish what a crash
 * interrupts. Books and usage of the Account stay for the administrator. While the API server does not answer, nothing is begun.
 */
export const postAccountDelete: MemberHandler = async ({ identity, accounts, log }, exchange, { person }) => {
  if (jsonText(exchange, 'email').trim().toLowerCase() !== person.email)
    throw new Refused('invalid', 'This is not your email.', { fields: { email: `Write ${person.email} to confirm.` } })
  const member = await identity.members.of(person.id)
  if (member) await accounts.assertReachable(member.accountName)
  log.info(
    { audit: 'person.delete', person: person.id, request: exchange.id, account: member?.accountName },
    'a person deletes the account',
  )
  await identity.members.beginDeletion(person.id)
  if (member) await accounts.suspend(member.accountName)
  await deletePerson(identity, person.id)
  await identity.members.remove(person.id)
  return empty()
}
