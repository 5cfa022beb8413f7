/**
 * Asks the operator what the keys of an account have used, and for the movements of its balance. In a cluster the questions carry a token of the
 * dashboard's ServiceAccount, whose rights are `get` on accounts/usage and accounts/ledger.
 */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { parseMicros } from '#contract/values/micros.ts'
import { parseSumAmount } from '#contract/values/signed-micros.ts'
import { messageOf } from '#platform/message-of.ts'
import type { OutageLog } from '#platform/outage-log.ts'
import { Refused } from '../http/refused.ts'

export interface OperatorUsageDeps {
  /** Base URL of the operator's usage interface. */
  readonly url: string
  /** File with the token; absent where the interface is on loopback and asks for none. */
  readonly tokenFile?: string | undefined
  readonly outage: Pick<OutageLog, 'failed' | 'works'>
  /** Longest wait for an answer, ms. */
  readonly timeoutMs?: number
}

const text = z.string().max(512)
const count = z.int().nonnegative()
const sum = z.string().refine((one) => parseSumAmount(one) !== undefined)

const usageAnswer = z.object({
  from: text,
  to: text,
  asOf: z.iso.datetime().nullable(),
  incomplete: z.array(text),
  isLate: z.boolean().optional(),
  rows: z.array(
    z.object({
      day: z.string().regex(/^\d{4}-\d{2}(-\d{2})?$/),
      model: text,
      key: text,
      requests: count,
      inputTokens: count,
      cachedInputTokens: count,
      outputTokens: count,
      cost: z.string().refine((one) => parseMicros(one) !== undefined),
      estimated: count,
      failed: count,
      refusedModel: count,
      refusedRate: count,
      refusedBudget: count,
      refusedOther: count,
    }),
  ),
})

const ledgerAnswer = z.object({
  currency: z.string().regex(/^[A-Z]{3}$/),
  asOf: z.iso.datetime(),
  balance: sum,
  incomplete: z.array(text),
  rows: z.array(
    z.object({
      time: text,
      type: z.enum(['TopUp', 'Grant', 'Refund', 'Dispute', 'Adjustment', 'Spend']),
      id: text,
      reference: text,
      amount: sum,
    }),
  ),
})

const failureAnswer = z.object({ error: z.object({ message: text }) })
/** How the operator names an account without books. Another 404 comes from another program. */
const NEVER_ACCEPTED = 'no Account of this name has ever been accepted'

interface Found {
  /** 200 or 404 */
  readonly status: number
  readonly body: string
}

/** Usage of an account by day, model and key. A month that the operator keeps as a whole has its name as `day`. */
export type OperatorUsageAnswer = z.output<typeof usageAnswer>
/** The movements of a balance, oldest first. Their amounts add up to `balance`. */
export type OperatorLedger = z.output<typeof ledgerAnswer>

const TIMEOUT_MS = 5_000
/** 20,000 rows of usage have some 6 MB. */
const MAX_BYTES = 16 * 1024 * 1024
/** Questions of one account at a time: a page asks two. */
const MAX_AT_ONCE = 4
const RETRY_SECONDS = 10
/** Characters of a failure in the log. */
const MAX_LOGGED = 300

export class OperatorUsage {
  readonly #deps: OperatorUsageDeps
  /** Questions under way by path: equal ones share one answer, and many of one account do not slow the others. */
  readonly #running = new Map<string, Map<string, Promise<Found>>>()

  constructor(deps: OperatorUsageDeps) {
    this.#deps = deps
  }

  /** @param from first day, `2026-11-24` @throws Refused */
  async usage(account: string, { from, to }: { readonly from: string; readonly to: string }): Promise<OperatorUsageAnswer> {
    const question = new URLSearchParams({ from, to, by: 'day,model,key', format: 'json' }).toString()
    const { body } = await this.#ask(account, `?${question}`)
    return this.#read(usageAnswer, body)
  }

  /** @returns undefined for an account that the operator has not accepted yet @throws Refused */
  async ledger(account: string): Promise<OperatorLedger | undefined> {
    const { status, body } = await this.#ask(account, '/ledger?format=json')
    if (status !== 404) return this.#read(ledgerAnswer, body)
    const { error } = this.#read(failureAnswer, body)
    if (error.message !== NEVER_ACCEPTED) throw this.#failed(`the operator answers 404: ${error.message}; check USAGE_URL`)
    return undefined
  }

  async #ask(account: string, path: string): Promise<Found> {
    const running = this.#running.get(account) ?? new Map<string, Promise<Found>>()
    const same = running.get(path)
    if (same !== undefined) return await same
    if (running.size >= MAX_AT_ONCE)
      throw new Refused('too-many-requests', 'Too many requests. Wait a moment, then try again.', { retryAfter: 1 })
    this.#running.set(account, running)
    const asked = this.#fetch(`/usage/v1/accounts/${encodeURIComponent(account)}${path}`).finally(() => {
      running.delete(path)
      if (running.size === 0) this.#running.delete(account)
    })
    running.set(path, asked)
    return await asked
  }

  async #fetch(path: string): Promise<Found> {
    try {
      const signal = AbortSignal.timeout(this.#deps.timeoutMs ?? TIMEOUT_MS)
      const response = await fetch(new URL(path, this.#deps.url), { headers: await this.#headers(), redirect: 'error', signal })
      const body = await boundedText(response)
      const { status } = response
      if (!response.ok && status !== 404) throw new Error(`the operator answers ${status}: ${body.slice(0, MAX_LOGGED)}`)
      return { status, body }
    } catch (error) {
      throw this.#failed(reasonOf(error))
    }
  }

  /** The kubelet renews the file, so each question reads it. */
  async #headers(): Promise<Record<string, string>> {
    const { tokenFile } = this.#deps
    return tokenFile === undefined ? {} : { authorization: `Bearer ${(await readFile(tokenFile, 'utf8')).trim()}` }
  }

  #read<T>(schema: z.ZodType<T>, body: string): T {
    try {
      const read = schema.parse(JSON.parse(body))
      this.#deps.outage.works()
      return read
    } catch {
      throw this.#failed('the answer is not one of an operator of this version; check USAGE_URL and upgrade both')
    }
  }

  #failed(why: string): Refused {
    this.#deps.outage.failed(`the usage of accounts cannot be read: ${why}`)
    return new Refused('unavailable', 'Usage is not available now. Your keys go on working. Try again in a moment.', {
      retryAfter: RETRY_SECONDS,
    })
  }
}

async function boundedText({ body }: Response): Promise<string> {
  if (body === null) return ''
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.byteLength
    if (bytes > MAX_BYTES) throw new Error(`the answer has more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** `fetch failed` alone says nothing; its cause does. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause === undefined ? messageOf(error) : `${messageOf(error)}: ${messageOf(cause)}`
}
