/**
 * The second judgement of a backend: at connect time, of the very addresses that are connected to. A name that was harmless when the
 * manifest was judged may point to loopback or a metadata server later (DNS rebinding), so checking beforehand alone would prove nothing.
 * Addresses written as such never reach a look-up; the model table judges those.
 */
import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { refuseAddress, type AddressRules } from '../shared/backend-address.ts'

/** Resolves a name to all its addresses: `NameLookup.find`. */
export type ResolveAll = (
  hostname: string,
  done: (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void,
) => void

/** Code of the error that a refused name ends in. */
export const REFUSED_ADDRESS = 'ERR_REFUSED_ADDRESS'

/**
 * Makes the `lookup` of a socket: all addresses of a name must be allowed, and exactly these are handed to the socket.
 * One refused address refuses the name: which of them gets the connection is not ours to choose.
 */
export function guardedLookup(rules: AddressRules, resolveAll: ResolveAll): LookupFunction {
  return (hostname, { all }, done) => {
    resolveAll(hostname, (error, addresses) => {
      const fault = error ?? refusal(hostname, addresses, rules)
      const first = addresses?.[0]
      if (fault !== undefined || first === undefined) return done(fault ?? notFound(hostname), [])
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

function notFound(hostname: string): NodeJS.ErrnoException {
  return failure(`${hostname} has no address`, 'ENOTFOUND')
}

function failure(message: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(message), { code })
}
