/**
 * Bounds the bytes of request bodies in memory: uploads cannot fill a pod. Shares are by tenant first and then by key, because a tenant may
 * make thousands of keys.
 */
import { Misconfigured } from '#platform/lifecycle.ts'
import { type Share, type ShareOwner, Shares } from './shares.ts'

export interface BodyLimits {
  readonly process: number
  /** What bodies above `SMALL_BYTES` may take: the rest of the process is left for small ones. */
  readonly large: number
  readonly perTenant: number
  readonly perKey: number
}

/** Result of taking bytes: taken, or refused because the process, the tenant or the key has reached its bound, or the body alone would pass that of its key. */
export type Taken = 'Taken' | 'ProcessFull' | 'TenantFull' | 'KeyFull' | 'TooLarge'

/** Parts of the bytes of the process: a tenant may have one in four, a key one in eight, and one in eight is left for small bodies. */
const PARTS_PER_TENANT = 4
const PARTS_PER_KEY = 8
const PARTS_FOR_SMALL = 8
/** Bodies up to this size, bytes, are small: nearly all calls have such a body. */
const SMALL_BYTES = 65_536
/**
 * Bodies may have one part in this many of the memory of the process. The text and the parsed value of a body take as much again, and
 * answers need the rest (decision 20).
 */
const PARTS_OF_MEMORY = 4

/** Computes the bounds. @param memoryBytes of the process, as its cgroup or the machine limits it */
export function bodyLimits(memoryBytes: number): BodyLimits {
  const process = Math.floor(memoryBytes / PARTS_OF_MEMORY)
  return {
    process,
    large: process - Math.floor(process / PARTS_FOR_SMALL),
    perTenant: Math.floor(process / PARTS_PER_TENANT),
    perKey: Math.floor(process / PARTS_PER_KEY),
  }
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

export class BodyBudget {
  readonly limits: BodyLimits
  /** Of all bodies. Only a BodyHold changes it. */
  bytes = 0
  readonly #tenants = new Shares()
  readonly #keys = new Shares()

  constructor(limits: BodyLimits) {
    this.limits = limits
  }

  open({ tenant, key }: ShareOwner): BodyHold {
    return new BodyHold(this, this.#tenants.of(tenant), this.#keys.of(key))
  }
}

/** The booking of one body. */
export class BodyHold {
  readonly #budget: BodyBudget
  readonly #tenant: Share
  readonly #key: Share
  #bytes = 0
  #isOpen = true

  constructor(budget: BodyBudget, tenant: Share, key: Share) {
    this.#budget = budget
    this.#tenant = tenant
    this.#key = key
    tenant.holders += 1
    key.holders += 1
  }

  /** @param bytes below 0: gives back a part */
  take(bytes: number): Taken {
    if (!this.#isOpen) return 'ProcessFull' // bytes that arrive after the end of the call
    if (bytes <= 0) this.#add(bytes) // also where others hold more than their bound, by `replace`
    return bytes <= 0 ? 'Taken' : this.#takeMore(bytes)
  }

  #takeMore(bytes: number): Taken {
    const { large, perKey, perTenant, process } = this.#budget.limits
    if (this.#bytes + bytes > perKey) return 'TooLarge'
    if (this.#key.held + bytes > perKey) return 'KeyFull'
    if (this.#tenant.held + bytes > perTenant) return 'TenantFull'
    const isSmall = this.#bytes + bytes <= SMALL_BYTES
    if (this.#budget.bytes + bytes > (isSmall ? process : large)) return 'ProcessFull'
    this.#add(bytes)
    return 'Taken'
  }

  /** Books bytes that are in memory already, instead of all others and whether or not there is room: the next body has to wait for it. */
  replace(bytes: number): void {
    if (this.#isOpen) this.#add(bytes - this.#bytes)
  }

  /** Returns all bytes. More may be taken afterwards, for an answer that is kept as a whole. */
  empty(): void {
    this.#add(-this.#bytes)
  }

  /** Returns all bytes and ends the hold. Further calls do nothing. */
  release(): void {
    this.empty()
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#tenant.holders -= 1
    this.#key.holders -= 1
  }

  #add(bytes: number): void {
    this.#budget.bytes += bytes
    this.#tenant.held += bytes
    this.#key.held += bytes
    this.#bytes += bytes
  }
}
