/** Bounds the bytes of request bodies in memory: uploads cannot fill a pod, and one key cannot take all the room. */
import { Misconfigured } from '#platform/lifecycle.ts'

export interface BodyLimits {
  readonly process: number
  readonly perKey: number
}

/** Result of taking bytes: taken, or refused because the process or the key has reached its bound. */
export type Taken = 'Taken' | 'ProcessFull' | 'KeyFull'

/** A key may have one part in this many of the bytes of the process. */
const PARTS_PER_KEY = 4
/**
 * Bodies may have one part in this many of the memory of the process. The text and the parsed value of a body take as much again, and
 * answers need the rest (decision 20).
 */
const PARTS_OF_MEMORY = 4

/** Maximum number of accounts. Beyond it, accounts without an open body are dropped. */
const MAX_ACCOUNTS = 10_000

/** Computes the bounds. @param memoryBytes of the process, as its cgroup or the machine limits it */
export function bodyLimits(memoryBytes: number): BodyLimits {
  const process = Math.floor(memoryBytes / PARTS_OF_MEMORY)
  return { process, perKey: Math.floor(process / PARTS_PER_KEY) }
}

/** @throws Misconfigured if a body of the largest size does not fit into the share of a key */
export function fittingBodyLimits(maxBodyBytes: number, memoryBytes: number): BodyLimits {
  const limits = bodyLimits(memoryBytes)
  if (maxBodyBytes <= limits.perKey) return limits
  const needed = maxBodyBytes * PARTS_OF_MEMORY * PARTS_PER_KEY
  throw new Misconfigured(
    `MAX_BODY_BYTES: ${maxBodyBytes} is more than one key may hold of ${memoryBytes} bytes of memory (${limits.perKey}); lower it, or raise the memory limit to ${needed} bytes`,
  )
}

interface Account {
  bytes: number
  /** Number of open bodies. An account with an open body stays, else the key would get a second account. */
  holds: number
}

export class BodyBudget {
  readonly limits: BodyLimits
  /** Of all bodies. Only a BodyHold changes it. */
  bytes = 0
  /** Accounts stay in the map, because a Map whose entries change with each request costs more than the counting itself. */
  readonly #accounts = new Map<string, Account>()

  constructor(limits: BodyLimits) {
    this.limits = limits
  }

  open(keyID: string): BodyHold {
    return new BodyHold(this, this.#accountOf(keyID))
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

/** The booking of one body. */
export class BodyHold {
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
    const { perKey, process } = this.#budget.limits
    if (this.#account.bytes + bytes > perKey) return 'KeyFull'
    if (this.#budget.bytes + bytes > process) return 'ProcessFull'
    this.#add(bytes)
    return 'Taken'
  }

  /** Returns all bytes. Further calls do nothing. */
  release(): void {
    this.#add(-this.#bytes)
    if (this.#isOpen) this.#account.holds -= 1
    this.#isOpen = false
  }

  #add(bytes: number): void {
    this.#budget.bytes += bytes
    this.#account.bytes += bytes
    this.#bytes += bytes
  }
}
