/**
 * Checks the addresses of a backend again when a connection is opened. A name that was harmless when the manifest was checked may later
 * resolve to loopback or to a metadata server (DNS rebinding), so the first check alone proves nothing. Literal addresses never reach a
 * look-up; the model table checks those.
 */
import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { refuseAddress, type AddressRules } from '#contract/values/backend-address.ts'

/** Resolves a name to all its addresses: `NameLookup.find`. */
export type ResolveAll = (
  hostname: string,
  done: (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void,
) => void

export const REFUSED_ADDRESS = 'ERR_REFUSED_ADDRESS'

/**
 * Makes the `lookup` function of a socket. It refuses a name if any of its addresses is refused, because the socket may connect to any of
 * them. The socket gets exactly the checked addresses.
 */
export function guardedLookup(rules: AddressRules, resolveAll: ResolveAll): LookupFunction {
  return (hostname, { all }, done) => {
    resolveAll(hostname, (error, addresses) => {
      const refused = error ?? refusal(hostname, addresses, rules)
      const first = addresses?.[0]
      if (refused !== undefined || first === undefined) return done(refused ?? failure(`${hostname} has no address`, 'ENOTFOUND'), [])
      if (all) done(null, [...addresses])
      else done(null, first.address, first.family)
    })
  }
}

function refusal(hostname: string, addresses: readonly LookupAddress[], rules: AddressRules): NodeJS.ErrnoException | undefined {
  for (const { address } of addresses) {
    const reason = refuseAddress(address, rules)
    if (reason !== undefined) return failure(`${hostname} may not be called: it has become ${address}, and ${reason}`, REFUSED_ADDRESS)
  }
  return undefined
}

function failure(message: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(message), { code })
}
