/** A prepaid account pays a translated message as it pays the same chat completion, and is refused by its balance in the same way. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectRow, WIRE_FORMATS, type WireFormat } from '../support/ask.ts'
import { openLab } from '../support/lab.ts'
import { costOf, PrepaidStack } from '../support/prepaid-stack.ts'
import { BALANCE } from '../support/rows.ts'
import { eventually } from '../support/wait-for.ts'

const MODEL = 'chat-only'
/** Output of a call that holds and costs 0.20 and a few micro-units for its prompt. */
const FIFTH = 100

const lab = openLab()
let prepaid: PrepaidStack

beforeAll(async () => {
  prepaid = await PrepaidStack.open(lab, 1)
  const backends = [{ name: 'counting', url: prepaid.model.url, messages: 'Translate' }]
  const pricing = { inputPerMillion: '1', cachedInputPerMillion: '1', outputPerMillion: '2000' }
  await prepaid.stack.serveModel(MODEL, { backends, pricing, contextTokens: 8_192 })
})
afterAll(() => prepaid.close())

describe.each([{ stream: false }, { stream: true }])('a call of a prepaid account (stream: $stream)', ({ stream }) => {
  const called = async (format: WireFormat): Promise<{ readonly counted: readonly string[]; readonly refused: string }> => {
    const account = `${format}-${stream}`
    await prepaid.account(account)
    const [credential = ''] = await prepaid.keys(account, 1)
    const call = (maxTokens = FIFTH) => {
      const fields = { stream, max_tokens: maxTokens }
      return prepaid.call(prepaid.stack.gateway, credential, { format, model: MODEL, session: account, fields })
    }
    expectRow(await call(), format, BALANCE.exhausted)
    expect(prepaid.spentOf(account)).toBe(0n)
    await prepaid.pay(`${account}-opening`, account, '0.30')
    await eventually(async () => expect((await call()).status).toBe(200))
    await prepaid.untilReported()
    const refused = expectRow(await call(), format, BALANCE.tooSmall)
    expect(prepaid.spentOf(account)).toBe(costOf({ inputTokens: 7, outputTokens: FIFTH }))
    const { admin } = prepaid.stack.redis
    const counted = await Promise.all((await admin.keys('hg:l:*:balance')).map(async (key) => (await admin.hget(key, 's')) ?? '0'))
    return { counted, refused }
  }

  it('costs the balance the same as a message that is translated and as a chat completion', async () => {
    const results = []
    for (const format of WIRE_FORMATS) results.push(await called(format))
    expect(results[1]?.refused).toBe(results[0]?.refused)
    const costs = new Set(results[1]?.counted.filter((cost) => cost !== '0'))
    expect([...costs]).toEqual([String(costOf({ inputTokens: 7, outputTokens: FIFTH }))])
  })
})
