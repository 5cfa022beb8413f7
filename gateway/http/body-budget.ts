/** Bytes of request bodies in memory, bounded for the process and for each key: uploads must not fill a pod, nor one key all of it. */

/** Bounds, bytes. */
export interface BodyLimits {
  readonly process: number
  readonly perKey: number
}

/** What became of some more bytes: taken, or refused since the process or the key has as much as it may. */
export type Taken = 'Taken' | 'ProcessFull' | 'KeyFull'

/** The bytes of one body. */
export interface BodyHold {
  take(bytes: number): Taken
  /** Gives everything back; a second call does nothing. */
  release(): void
}

/** A key may have this part of what the process has. */
const PARTS_PER_KEY = 4
/** The process may have this part of its memory: text and parsed value take as much again, and answers need the rest. */
const PARTS_OF_MEMORY = 4

/** Most accounts kept. Beyond this bound, accounts without an open body are dropped. */
const MAX_ACCOUNTS = 10_000

/** @param memoryBytes of the process, as its cgroup or the machine bounds it */
export function bodyLimits(memoryBytes: number): BodyLimits {
  const process = Math.floor(memoryBytes / PARTS_OF_MEMORY)
  return { process, perKey: Math.floor(process / PARTS_PER_KEY) }
}

/** @throws RangeError, naming setting and remedy, when one body of the largest size does not fit into what a key may have */
export function fittingBodyLimits(maxBodyBytes: number, memoryBytes: number): BodyLimits {
  const limits = bodyLimits(memoryBytes)
  if (maxBodyBytes <= limits.perKey) return limits
  const needed = maxBodyBytes * PARTS_OF_MEMORY * PARTS_PER_KEY
  throw new RangeError(
    `MAX_BODY_BYTES: ${maxBodyBytes} is more than one key may hold of ${memoryBytes} bytes of memory (${limits.perKey}); lower it, or raise the memory limit to ${needed} bytes`,
  )
}

/** One key. */
interface Account {
  bytes: number
  /** Bodies that are open: an account with one must not be forgotten, or the key would get a second one. */
  holds: number
}

/** Made once per process. */
export class BodyBudget {
  readonly #limits: BodyLimits
  /** Accounts stay: a Map whose entries come and go with each request costs more than all of the counting. */
  readonly #accounts = new Map<string, Account>()
  #total = 0

  constructor(limits: BodyLimits) {
    this.#limits = limits
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#total
  }

  /** Opens the account of one body. @param keyID public id of the Credential used */
  open(keyID: string): BodyHold {
    return new Hold(this, this.#accountOf(keyID))
  }

  /** More bytes of one account. */
  take(account: Account, bytes: number): Taken {
    if (account.bytes + bytes > this.#limits.perKey) return 'KeyFull'
    if (this.#total + bytes > this.#limits.process) return 'ProcessFull'
    this.#total += bytes
    account.bytes += bytes
    return 'Taken'
  }

  /** Takes bytes back that an account was given. */
  giveBack(account: Account, bytes: number): void {
    this.#total -= bytes
    account.bytes -= bytes
  }

  #accountOf(keyID: string): Account {
    const known = this.#accounts.get(keyID)
    if (known) return known
    if (this.#accounts.size >= MAX_ACCOUNTS) this.#forgetUnused()
    const made = { bytes: 0, holds: 0 }
    this.#accounts.set(keyID, made)
    return made
  }

  #forgetUnused(): void {
    for (const [keyID, { holds }] of this.#accounts) if (holds === 0) this.#accounts.delete(keyID)
  }
}

/** One body and the account that it is booked on. */
class Hold implements BodyHold {
  readonly #budget: BodyBudget
  readonly #account: Account
  #bytes = 0
  #isOpen = true

  constructor(budget: BodyBudget, account: Account) {
    this.#budget = budget
    this.#account = account
    account.holds += 1
  }

  take(bytes: number): Taken {
    const taken = this.#budget.take(this.#account, bytes)
    if (taken === 'Taken') this.#bytes += bytes
    return taken
  }

  release(): void {
    this.#budget.giveBack(this.#account, this.#bytes)
    this.#bytes = 0
    if (this.#isOpen) this.#account.holds -= 1
    this.#isOpen = false
  }
}
