/** The people of the stand-in providers, and the choice that the page sends. */

/** A person at a provider. */
export interface StubPerson {
  /** The identity: GitHub's id and the subject of an ID token follow it, whatever the address is. */
  readonly account: string
  readonly name: string
  readonly email: string
  /** Whether the provider has verified the address. */
  readonly isVerified: boolean
}

/** The people that the page offers by default. Both providers offer the same people, so that one address can meet two providers. */
export const STUB_PEOPLE: readonly StubPerson[] = [
  { account: 'ada', name: 'Ada Lovelace', email: 'ada@example.com', isVerified: true },
  { account: 'grace', name: 'Grace Hopper', email: 'grace@example.com', isVerified: true },
  { account: 'niklaus', name: 'Niklaus Wirth', email: 'niklaus@example.com', isVerified: false },
]

const ADDRESS = /^[^\s@]+@[^\s@]+$/
/** Longest address that mail servers accept. */
const MAX_ADDRESS = 254
const ACCOUNT = /^\S{1,255}$/

/** The person that a form names: one of `people`, or a free address. @returns undefined when the form names no usable person */
export function chosenPerson(form: URLSearchParams, people: readonly StubPerson[]): StubPerson | undefined {
  const known = form.get('person')
  if (known !== null) return people.find(({ account }) => account === known)
  const email = form.get('email')?.trim() ?? ''
  if (!ADDRESS.test(email) || email.length > MAX_ADDRESS) return undefined
  const account = form.get('account')?.trim() || email.toLowerCase()
  if (!ACCOUNT.test(account)) return undefined
  return { account, name: email.replace(/@.*$/, ''), email, isVerified: form.get('verified') === 'yes' }
}
