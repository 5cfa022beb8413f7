/** The price of a call on a real llama-server, whose cache holds the prompt from the second call on: each token is charged once. */
import { beforeAll, describe, expect, it } from 'vitest'
import { ask, type WireFormat, WIRE_FORMATS } from '../support/ask.ts'
import { spentMicros } from '../support/key-spend.ts'
import { openLab } from '../support/lab.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'

const MODEL = 'cached-model'
/** Of a token, in millionths of the currency; a million tokens cost so many units. */
const PRICE = { fresh: 3, cached: 1, output: 15, call: 2_000 }
const PRICING = {
  ...{ inputPerMillion: String(PRICE.fresh), cachedInputPerMillion: String(PRICE.cached), outputPerMillion: String(PRICE.output) },
  ...{ cacheWritePerMillion: '4', perRequest: '0.002' },
}
const BUDGET = { name: 'ever', amount: '1000', unit: 'Currency', window: 'Lifetime' }
const PROMPT = 'The quick brown fox jumps over the lazy dog, again and again, until the night falls over the wide land. '

const lab = openLab()
let stack: Stack

beforeAll(async () => {
  stack = await lab.stack()
  await stack.serveModel(MODEL, { pricing: PRICING, maxOutputTokens: 64 })
})

interface ReportedUsage {
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
  readonly prompt_tokens_details?: { readonly cached_tokens?: number }
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly cache_read_input_tokens?: number
}

/** Fresh, cached and written tokens of an answer, read here and not by the product: the last count of each name holds. */
function tokensIn(text: string): { readonly fresh: number; readonly cached: number; readonly output: number } {
  const usages = [...text.matchAll(/"usage":(\{(?:[^{}]|\{[^{}]*\})*\})/g)].map(([, json = '']) => JSON.parse(json) as ReportedUsage)
  const usage: ReportedUsage = Object.assign({}, ...usages)
  const cached = usage.prompt_tokens_details?.cached_tokens ?? usage.cache_read_input_tokens ?? 0
  const fresh = usage.input_tokens ?? (usage.prompt_tokens ?? 0) - cached
  return { fresh, cached, output: usage.completion_tokens ?? usage.output_tokens ?? 0 }
}

describe.each(WIRE_FORMATS)('a call in the format %s', (format: WireFormat) => {
  it.each([false, true])(
    'of a cached prompt costs its cached, its fresh and its output tokens, and the call; streamed: %s',
    async (stream) => {
      const credential = await stack.issueKey(`cache-${format}-${stream}`, { budgets: [BUDGET] })
      const options = format === 'openai' && stream ? { stream_options: { include_usage: true } } : {}
      const fields = { stream, ...options, max_tokens: 4, messages: [{ role: 'user', content: `${format} ${stream}: ${PROMPT}` }] }
      const totals = { cached: 0, cost: 0 }
      for (let call = 0; call < 3; call += 1) {
        const { status, text } = await ask(lab, stack.gateway.url, { format, credential, model: MODEL, fields })
        expect(status, text).toBe(200)
        const { fresh, cached, output } = tokensIn(text)
        totals.cached += cached
        totals.cost += PRICE.fresh * fresh + PRICE.cached * cached + PRICE.output * output + PRICE.call
      }
      expect(totals.cached, 'the server has used its cache').toBeGreaterThan(50)
      await waitFor('the cost to be settled', async () => (await spentMicros(lab, stack.gateway.url, credential)) === totals.cost)
    },
  )
})
