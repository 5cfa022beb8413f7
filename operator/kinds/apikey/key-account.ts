/** What the account of an ApiKey allows: whether the key is accepted, and why not. Pure. */
import type { ApiKeyCondition } from '#api/conditions.ts'
import type { KeyAccount } from '../../accounts/accounts.ts'
import type { AccountLimit, Observed } from './observed.ts'

type Accepted = Pick<Extract<ApiKeyCondition, { type: 'Accepted' }>, 'reason' | 'message'>
type Facts = Pick<Observed, 'apiKey' | 'account' | 'isNew' | 'hasAccounts' | 'isAccountRequired' | 'accountLimit' | 'gatewayAccounts'>

/**
 * @returns undefined if nothing about the account keeps the key from being issued or from working. A missing account and one that does not
 * admit the namespace get one message: only who may read Accounts may know which exist
 */
export function accountRefusal(facts: Facts): Accepted | undefined {
  const { apiKey, account, isNew, hasAccounts } = facts
  const name = apiKey.spec.accountRef?.name
  if (name === undefined) return withoutAccount(facts)
  if (!hasAccounts) return accountsOff(isNew)
  if (account === undefined) return notFound(name, isNew)
  return notAdmitted(facts, account) ?? withoutPlan(account, isNew) ?? (isNew ? newRefused(facts) : undefined)
}

function notAdmitted({ apiKey, isNew }: Facts, { name, uid, claim, admitsNamespace }: KeyAccount): Accepted | undefined {
  if (isNew && admitsNamespace !== true) return notFound(name, isNew)
  if (admitsNamespace === false) return namespaceRefused(name, apiKey.metadata.namespace ?? '')
  return uid === undefined ? notAccepted(name, claim) : undefined
}

/** A key that works goes on by the last record of a Plan that was deleted. */
function withoutPlan({ name, planName, plan, planSpec }: KeyAccount, isNew: boolean): Accepted | undefined {
  return plan === undefined || (isNew && planSpec === undefined) ? planNotFound(name, planName) : undefined
}

/** Whether the account of the key is suspended, so that the key answers 401. */
export function isAccountSuspended({ account }: Pick<Observed, 'account'>): boolean {
  return account?.state === 'Suspended'
}

function withoutAccount({ apiKey, isNew, isAccountRequired }: Facts): Accepted | undefined {
  if (!isNew || !isAccountRequired) return undefined
  const message = `Keys of namespace ${apiKey.metadata.namespace ?? ''} need an account. Create another ApiKey with spec.accountRef.`
  return { reason: 'AccountRequired', message }
}

const effectOf = (isNew: boolean): string => (isNew ? 'Until then no key is issued.' : 'Until then the key answers 401.')

function accountsOff(isNew: boolean): Accepted {
  const message = `This installation watches no Accounts. Ask its administrator to set accounts.enabled: true, or create an ApiKey without spec.accountRef. ${effectOf(isNew)}`
  return { reason: 'AccountNotFound', message }
}

function notFound(name: string, isNew: boolean): Accepted {
  const message = `There is no Account ${name} that admits this namespace. Create it, or ask its administrator to add the namespace to spec.namespaces. ${effectOf(isNew)}`
  return { reason: 'AccountNotFound', message }
}

function namespaceRefused(name: string, namespace: string): Accepted {
  const message = `Account ${name} does not admit namespace ${namespace} any more, so the key answers 401. Ask its administrator to add the namespace to spec.namespaces.`
  return { reason: 'NamespaceNotAllowed', message }
}

const NOT_ACCEPTED: Readonly<Record<string, string>> = {
  Foreign: 'it belongs to another installation of Headgate in this cluster',
  NameUsed: 'an Account that was deleted had its name',
  Missing: 'its books are gone',
  Damaged: 'its books are damaged',
}

function notAccepted(name: string, claim: string): Accepted {
  const why = NOT_ACCEPTED[claim] ?? 'its books are being opened'
  return { reason: 'AccountNotAccepted', message: `Account ${name} is not accepted: ${why}. Its conditions name the remedy.` }
}

function planNotFound(name: string, plan: string): Accepted {
  return {
    reason: 'PlanNotFound',
    message: `Account ${name} is on the Plan ${plan}, which does not exist. Until it does, no key is issued.`,
  }
}

const TOO_MANY: Readonly<Record<AccountLimit['of'], (name: string, most: number) => string>> = {
  ActiveKeys: (name, most) =>
    `Account ${name} has ${most} keys, as many as its plan allows. Revoke or delete keys that are not used; the oldest ApiKey that waits is issued next.`,
  AllKeys: (name, most) =>
    `Account ${name} has ${most} keys together with those that are revoked or expired, as many as it may have. Delete ApiKeys that are revoked or expired.`,
}

function newRefused({ account, accountLimit, gatewayAccounts }: Facts): Accepted | undefined {
  const name = account?.name ?? ''
  if (account?.isPending === true) {
    const message = `The address of the owner of Account ${name} is not verified yet. The key is issued once it is.`
    return { reason: 'EmailNotVerified', message }
  }
  if (accountLimit !== undefined) return { reason: 'TooManyKeys', message: TOO_MANY[accountLimit.of](name, accountLimit.most) }
  if (gatewayAccounts !== 'TooOld') return undefined
  const message = 'A gateway pod runs a version that knows no accounts. Update all gateway pods; the key is issued then.'
  return { reason: 'GatewayTooOld', message }
}
