/** A message that is translated costs what the same chat completion costs: the same holds, charges, headers and refusals, by every limit. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { type Answer, type ExpectedRow, expectRow, type Question, WIRE_FORMATS, type WireFormat } from '../support/ask.ts'
import { openLab } from '../support/lab.ts'
import { LimitedAnswers, lifeBudget } from '../support/limited-answers.ts'
import type { IssuedKey } from '../support/records.ts'
import { LIMITS } from '../support/rows.ts'
import { eventually } from '../support/wait-for.ts'

const PRICING = { inputPerMillion: 3_000_000, cachedInputPerMillion: 1_000_000, outputPerMillion: 15_000_000, perRequest: 2_000 }
/**
 * Each format has models of its own, because answers teach a gateway how long prompts and answers of a model are. Their names have one length,
 * because a hold is by the bytes of a body.
 */
const KINDS = ['reported', 'unreported', 'broken'] as const
type Kind = (typeof KINDS)[number]
const modelOf = (kind: Kind, format: WireFormat): string => `${kind}-${format.slice(0, 4)}`
const EVERY = { requestsPerMinute: 100, tokensPerMinute: 50_000, maxConcurrentRequests: 3 }

const lab = openLab()
let limits: LimitedAnswers
let count = 0

beforeAll(async () => {
  const names = KINDS.flatMap((kind) => WIRE_FORMATS.map((format) => modelOf(kind, format)))
  limits = await LimitedAnswers.open(lab, 'translated', {
    chatModels: Object.fromEntries(names.map((name) => [name, { pricing: PRICING }])),
    accounts: { ...accountOf('openai'), ...accountOf('anthropic') },
  })
})
afterAll(() => limits.close())

const accountOf = (format: WireFormat) => ({
  [`account-${format}`]: { limits: { requestsPerMinute: 50, tokensPerMinute: 40_000 }, budgets: [lifeBudget({ amount: 50_000_000 })] },
})

const issue = (change: Partial<KeyRecord>): Promise<IssuedKey> => limits.issue(`translated-${count++}`, change)

interface Call {
  readonly format: WireFormat
  readonly stream: boolean
  readonly kind?: Kind
  readonly directives?: string
  readonly signal?: AbortSignal
}

function call(key: IssuedKey, { format, stream, kind = 'reported', directives = 'words=8', signal }: Call): Promise<Answer> {
  const headers = { 'x-session-id': `stub:${directives}` }
  const question: Question = { format, model: modelOf(kind, format), fields: { stream, max_tokens: 40 }, headers }
  return limits.call(key, { ...question, ...(signal && { signal }) })
}

/** Limits and what is left, by the headers of either format. */
function shownLimits({ headers }: Answer): Readonly<Record<string, string | null>> {
  const facts = ['requests', 'tokens'].flatMap((what) =>
    ['limit', 'remaining'].map((fact) => {
      const [openai, anthropic] = [headers.get(`x-ratelimit-${fact}-${what}`), headers.get(`anthropic-ratelimit-${what}-${fact}`)]
      return [`${what} ${fact}`, openai ?? anthropic] as const
    }),
  )
  return Object.fromEntries(facts)
}

/** What a key has spent, and what its limits have left, once nothing is held: what two readings say, because values are up to a second old. */
async function spentBy(key: IssuedKey): Promise<unknown> {
  let last: unknown
  await eventually(
    async () => {
      const { budgets, limits: left } = await limits.view(key)
      const before = last
      last = { used: budgets.map(({ used }) => used), left: left.map((one) => [one.limit, one.left]) }
      expect(budgets.map(({ held }) => Number(held))).toEqual(budgets.map(() => 0))
      expect(await limits.permits(key)).toBe(0)
      expect(last).toEqual(before)
    },
    { everyMs: 1_100 },
  )
  return last
}

/** Runs the same for both formats. @returns what it gave for chat completions, which is what it gave for messages */
async function same<T>(run: (format: WireFormat) => Promise<T>): Promise<T> {
  const [chat, message] = [await run('openai'), await run('anthropic')]
  expect(message).toEqual(chat)
  return chat
}

const WAYS = [{ stream: false }, { stream: true }]

describe.each(WAYS)('a translated message (stream: $stream) is a chat completion', ({ stream }) => {
  test.each([
    { kind: 'reported', directives: 'words=8' },
    { kind: 'reported', directives: 'words=40' },
    { kind: 'unreported', directives: 'words=8,nousage=1' },
    { kind: 'broken', directives: 'status=400' },
    { kind: 'broken', directives: 'status=503' },
  ] as const)('in its headers and its charge: $kind, $directives', async ({ kind, directives }) => {
    const facts = await same(async (format) => {
      const key = await issue({ limits: EVERY, budgets: [lifeBudget({ amount: 100_000_000 })] })
      const answer = await call(key, { format, stream, kind, directives })
      return { isOk: answer.status === 200, shown: shownLimits(answer), spent: await spentBy(key) }
    })
    const isOk = !directives.includes('status')
    expect([facts.isOk, facts.shown['requests remaining']]).toEqual([isOk, isOk ? '99' : null])
  })

  test('in its charge where the server breaks off', async () => {
    await same(async (format) => {
      const key = await issue({ limits: EVERY, budgets: [lifeBudget({ amount: 100_000_000 })] })
      const { status } = await call(key, { format, stream, kind: 'broken', directives: stream ? 'words=20,cut=6' : 'words=8,cut=1' })
      return { status, spent: await spentBy(key) }
    })
  })

  test('in what it holds while it runs, and in its charge when its client leaves', async () => {
    const held = await same(async (format) => {
      const key = await issue({ limits: EVERY, budgets: [lifeBudget({ amount: 100_000_000 })] })
      const leaving = new AbortController()
      const before = limits.reached
      const answer = call(key, { format, stream, kind: 'broken', directives: 'delay=60000', signal: leaving.signal })
      await eventually(() => expect(limits.reached).toBe(before + 1))
      const { budgets, limits: left } = await limits.view(key)
      const holds = [budgets.map((budget) => budget.held), left.map((one) => [one.limit, one.left]), await limits.permits(key)]
      leaving.abort()
      await expect(answer).rejects.toThrow('aborted')
      return { holds, spent: await spentBy(key) }
    })
    expect(held.holds[2]).toBe(1)
  })

  test('in what it costs its account', async () => {
    await same(async (format) => {
      const key = await issue({ account: `account-${format}`, budgets: [lifeBudget({ amount: 100_000_000 })] })
      const answer = await call(key, { format, stream, directives: 'words=12' })
      const account = await limits.ledger(`account-${format}`, 'budget')
      return { shown: shownLimits(answer), spent: await spentBy(key), hasCounted: Object.keys(account).length > 0 }
    })
  })

  const refusedBy = async (change: Partial<KeyRecord>, row: ExpectedRow, fill: (key: IssuedKey, format: WireFormat) => Promise<unknown>) =>
    await same(async (format) => {
      const key = await issue(change)
      await fill(key, format)
      const answer = await call(key, { format, stream })
      const wait = answer.headers.get('retry-after')
      const isFinal = answer.headers.get('x-should-retry') === 'false'
      const message = expectRow(answer, format, { ...row, isFinal, ...(wait !== null && { retryAfter: Number(wait) }) })
      return { isFinal, message: message.replace(/ in [\d.]+m?s/g, ''), shown: shownLimits(answer) }
    })

  test('in its refusal by the requests per minute', async () => {
    await refusedBy({ limits: { requestsPerMinute: 1 } }, LIMITS.requests, (key, format) => call(key, { format, stream }))
  })

  test('in its refusal by the tokens per minute', async () => {
    await refusedBy({ limits: { tokensPerMinute: 60 } }, LIMITS.tokens, (key, format) =>
      call(key, { format, stream, directives: 'words=40' }),
    )
  })

  test('in its refusal by the concurrent requests', async () => {
    const leaving = new AbortController()
    await refusedBy({ limits: { maxConcurrentRequests: 1 } }, LIMITS.concurrency, async (key, format) => {
      const running = call(key, { format, stream, directives: 'delay=60000', signal: leaving.signal })
      running.catch(() => undefined) // it is left running
      await eventually(async () => expect(await limits.permits(key)).toBe(1))
    })
    leaving.abort()
  })

  test('in its refusal by a budget that is too small', async () => {
    const tooSmall: ExpectedRow = {
      ...{ status: 402, openai: ['insufficient_quota', 'insufficient_quota', null], anthropic: 'billing_error', limit: 'budget' },
      starts: 'This call does not fit the budget',
    }
    await refusedBy({ budgets: [lifeBudget({ amount: 2_100 })] }, tooSmall, () => Promise.resolve())
  })
})
