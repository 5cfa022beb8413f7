/** The password of a person, which is one of the rows by which the library knows ways to sign in. */
import type { Identity } from './identity.ts'

/** Name of the password among the ways to sign in. */
export const CREDENTIAL = 'credential'

/** @returns false for another password, and for a person without one */
export async function isPasswordOf({ auth }: Identity, userId: string, password: string): Promise<boolean> {
  const context = await auth.$context
  const row = (await context.internalAdapter.findAccounts(userId)).find(({ providerId }) => providerId === CREDENTIAL)
  return await context.password.verify({ hash: row?.password ?? '', password })
}
