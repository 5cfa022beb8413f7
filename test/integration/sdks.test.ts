/** Every SDK case that passes directly against a real model server passes through the gateway too. */
import { beforeAll, describe, expect, it } from 'vitest'
import { openLab } from '../support/lab.ts'
import { ANTHROPIC_CASES } from '../support/sdk-cases/anthropic-cases.ts'
import { LANGCHAIN_CASES } from '../support/sdk-cases/langchain-cases.ts'
import { OPENAI_CASES } from '../support/sdk-cases/openai-cases.ts'
import type { Via } from '../support/sdk-cases/sdk-case.ts'
import { VERCEL_CASES } from '../support/sdk-cases/vercel-cases.ts'
import { UPSTREAM_MODEL } from '../support/model-server-part.ts'

const lab = openLab()
let direct: Via
let gateway: Via

beforeAll(async () => {
  const stack = await lab.stack({ gateways: 1 })
  await stack.serveModel('sdk-model')
  const credential = await stack.issueKey('sdk-key', { models: ['sdk-model'] })
  const { url: server } = lab.address.modelServer
  direct = { openaiUrl: `${server}/v1`, anthropicUrl: server, credential: 'none-needed', model: UPSTREAM_MODEL }
  gateway = { openaiUrl: `${stack.gateway.url}/v1`, anthropicUrl: stack.gateway.url, credential, model: 'sdk-model' }
})

describe.each([
  ['openai', OPENAI_CASES],
  ['@anthropic-ai/sdk', ANTHROPIC_CASES],
  ['Vercel AI SDK', VERCEL_CASES],
  ['LangChain.js', LANGCHAIN_CASES],
])('%s gives the same through the gateway as directly:', (_, cases) => {
  // retried, since a random model sometimes ends at its first token
  it.each(Object.entries(cases))('%s', { retry: 2 }, async (_name, run) => {
    const expected = await run(direct)
    expect(JSON.stringify(expected), 'each fact holds directly').not.toContain('false')
    expect(await run(gateway)).toEqual(expected)
  })
})
