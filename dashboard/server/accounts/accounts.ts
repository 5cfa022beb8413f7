/**
 * The Account of each person. The cluster holds the Account and its money; the database only says whose it is. So a lost database loses no money:
 * a person whose verified address is that of an Account without a member gets that Account back.
 */
import { createHash } from 'node:crypto'
import type { Account } from '#api/account.ts'
import { CREATED_BY_DASHBOARD, CREATED_BY_LABEL } from '#api/metadata.ts'
import { accounts as accountResource } from '#api/resources.ts'
import { apiVersionOf, type Informer, isKubeError, type KubePort } from '#kube/port.ts'
import type { Log } from '#platform/log.ts'
import { assertListed } from './listed.ts'
import type { Member, Members } from './members.ts'

/** How the Accounts of people who sign up are made. */
export interface NewAccountSettings {
  readonly defaultPlan: string
  readonly billing: 'Prepaid' | 'Unmetered'
  /** Namespace of the keys that people make in the dashboard. */
  readonly keysNamespace: string
}

export interface AccountsDeps {
  readonly kube: KubePort
  readonly informer: Informer<Account>
  readonly members: Members
  readonly settings: NewAccountSettings
  readonly log: Log
}

/** The person as far as the Account is concerned. The address is verified. */
export interface AccountOwner {
  readonly id: string
  readonly name: string
  readonly email: string
}

export type PersonsAccount =
  | { readonly state: 'Found'; readonly member: Member; readonly account: Account }
  /** The administrator has deleted the Account. */
  | { readonly state: 'Closed'; readonly member: Member }
  /** The API server does not answer. */
  | { readonly state: 'Unreachable' }

/** Set by an administrator, to `true`, on an Account of theirs whose owner the dashboard may change. */
export const OWNER_FOLLOWS_ANNOTATION = 'headgate.dev/owner-follows-person'
const BY_EMAIL = 'ownerEmail'
const NAME_DIGITS = 20

/** The name of the Account that the dashboard creates for a person: the same at every try. */
export function accountNameOf(userId: string): string {
  return `u-${createHash('sha256').update(userId).digest('hex').slice(0, NAME_DIGITS)}`
}

export class Accounts {
  readonly #deps: AccountsDeps

  constructor(deps: AccountsDeps) {
    this.#deps = deps
    deps.informer.addIndex(BY_EMAIL, ownerEmails)
  }

  /** The Account of a person with a verified address. It is adopted or created at the first call. */
  async of(owner: AccountOwner): Promise<PersonsAccount> {
    const { members } = this.#deps
    try {
      const member = (await members.of(owner.id)) ?? (await this.#join(owner))
      const account = await this.#find(member.accountName)
      if (account) return await this.#found(member, account)
      if (member.isConfirmed || member.isDeleting) return { state: 'Closed', member }
      return await this.#found(member, await this.#create(owner, member.accountName))
    } catch (error) {
      if (isKubeError(error, 'Unreachable', 'TooManyRequests')) return { state: 'Unreachable' }
      throw error
    }
  }

  /** Finds the Account as `of` does, and writes the address of the person into it, if the dashboard may. */
  async bringUpToDate(owner: AccountOwner): Promise<PersonsAccount> {
    const found = await this.of(owner)
    if (found.state === 'Unreachable') return found
    if (found.state === 'Found') await this.#setOwnerEmail(found.account, owner)
    if (found.member.isEmailDue) await this.#deps.members.endEmailChange(owner.id)
    return found
  }

  async #found(member: Member, account: Account): Promise<PersonsAccount> {
    if (!member.isConfirmed) await this.#deps.members.confirm(member.userId)
    return { state: 'Found', member, account }
  }

  /** The cache first; a live read where the cache has nothing, because a fresh Account may not have reached it. */
  async #find(name: string): Promise<Account | undefined> {
    const ref = { namespace: '', name }
    return this.#deps.informer.get(ref) ?? (await this.#deps.kube.get(accountResource, ref))
  }

  /** Makes the person a member: of the one Account that waits for its owner, or of one to be created. */
  async #join(owner: AccountOwner): Promise<Member> {
    const { members, log } = this.#deps
    const waiting = await this.#waitingFor(owner.email)
    if (waiting) {
      const member = await members.add(owner.id, waiting.metadata.name, true)
      if (member) {
        log.info(
          { audit: 'account.adopt', person: owner.id, account: member.accountName },
          'a person got an existing Account by the verified address',
        )
        return member
      }
    }
    const member = await members.add(owner.id, accountNameOf(owner.id), false)
    if (!member) throw new Error(`the person of Account ${accountNameOf(owner.id)} is gone`) // nobody else has the name, which is a hash of the id
    return member
  }

  /** The one Active Account with this owner and without a member. Of several none is chosen, because nothing tells which one is meant. */
  async #waitingFor(email: string): Promise<Account | undefined> {
    const { informer, members } = this.#deps
    // not known yet whether an Account waits: a second one must not be made, and waiting for the API server would hang the request
    assertListed(informer, '', 'Accounts')
    const candidates = [...informer.byIndex(BY_EMAIL, email.toLowerCase())].filter(isOpen)
    const taken = await members.areTaken(candidates.map(({ metadata }) => metadata.name))
    const [first, ...others] = candidates.filter(({ metadata }) => !taken.has(metadata.name))
    return others.length === 0 ? first : undefined
  }

  async #create(owner: AccountOwner, name: string): Promise<Account> {
    const { kube, log, settings } = this.#deps
    try {
      const created = await kube.create(accountResource, newAccount(owner, name, settings))
      log.info({ audit: 'account.create', person: owner.id, account: name }, 'an Account was created')
      return created
    } catch (error) {
      const existing = isKubeError(error, 'AlreadyExists') ? await kube.get(accountResource, { namespace: '', name }) : undefined
      if (existing) return existing // an earlier try, or another replica
      throw error
    }
  }

  /** The owner of an Account that an administrator made is the administrator's, unless marked: the admission policy holds the dashboard to that. */
  async #setOwnerEmail(account: Account, { id, email }: AccountOwner): Promise<void> {
    if (account.spec.owner?.email === email) return
    if (!isOwnerFree(account)) {
      if (account.spec.owner?.email.toLowerCase() !== email)
        this.#deps.log.info({ person: id, account: account.metadata.name }, 'the owner of an Account stays as the administrator wrote it')
      return
    }
    const owner = { ...account.spec.owner, email }
    await this.#deps.kube.patch(accountResource, refOfName(account.metadata.name), [{ op: 'add', path: '/spec/owner', value: owner }])
  }

  /** @throws KubeError if the API server does not answer now */
  async assertReachable(name: string): Promise<void> {
    await this.#deps.kube.get(accountResource, refOfName(name))
  }

  /** Stops all keys of the Account; its books and its usage stay. An absent Account has no keys. */
  async suspend(name: string): Promise<void> {
    const account = await this.#deps.kube.get(accountResource, refOfName(name))
    if (account === undefined || account.spec.state === 'Suspended') return
    await this.#deps.kube.patch(accountResource, refOfName(name), [{ op: 'add', path: '/spec/state', value: 'Suspended' }])
  }
}

function ownerEmails({ spec }: Account): readonly string[] {
  return spec.owner ? [spec.owner.email.toLowerCase()] : []
}

function refOfName(name: string): { readonly namespace: ''; readonly name: string } {
  return { namespace: '', name }
}

function isOwnerFree({ metadata: { labels, annotations } }: Account): boolean {
  return labels?.[CREATED_BY_LABEL] === CREATED_BY_DASHBOARD || annotations?.[OWNER_FOLLOWS_ANNOTATION] === 'true'
}

function isOpen({ spec, metadata }: Account): boolean {
  return spec.state === 'Active' && metadata.deletionTimestamp === undefined
}

/** The admission policy of the chart admits exactly this form. */
export function newAccount({ name: person, email }: AccountOwner, name: string, settings: NewAccountSettings): Account {
  return {
    apiVersion: apiVersionOf(accountResource),
    kind: accountResource.kind,
    metadata: { name, labels: { [CREATED_BY_LABEL]: CREATED_BY_DASHBOARD } },
    spec: {
      ...(person === '' ? {} : { displayName: Array.from(person).slice(0, 63).join('') }),
      owner: { email, emailVerification: 'Verified' },
      planRef: { name: settings.defaultPlan },
      state: 'Active',
      billing: settings.billing,
      namespaces: { matchLabels: { 'kubernetes.io/metadata.name': settings.keysNamespace } },
    },
  }
}
