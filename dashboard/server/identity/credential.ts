/** The password of a person, which is one of the rows by which the library knows ways to sign in. */
import type { Identity } from './identity.ts'

/** Name of the password among the ways to sign in. */
export const CREDENTIAL = 'credential'

/** @returns false for another password, and for a person without one */
export async function isPasswordOf(identity: Identity, userId: string, password: string): Promise<boolean> {
  const context = await identity.auth.$context
  return await context.password.verify({ hash: (await hashOf(identity, userId)) ?? '', password })
}

export async function hasPassword(identity: Identity, userId: string): Promise<boolean> {
  return (await hashOf(identity, userId)) !== undefined
}

/** @returns the hash of the password; undefined without a password */
export async function hashOf({ auth }: Identity, userId: string): Promise<string | undefined> {
  const { internalAdapter } = await auth.$context
  const row = (await internalAdapter.findAccounts(userId)).find(({ providerId }) => providerId === CREDENTIAL)
  return row?.password ?? undefined
}
