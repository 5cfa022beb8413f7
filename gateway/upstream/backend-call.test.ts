import { describe, expect, test } from 'vitest'
import { unsentExchange } from '../../test/support/unsent-exchange.ts'
import { backendRecord, modelRecord } from '../../test/support/upstream-harness.ts'
import { chatCompletions } from '../dialects/chat-completions.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { messages } from '../dialects/messages.ts'
import { readRequest } from '../dialects/read-request.ts'
import { GatewayError } from '../errors.ts'
import { backendCall } from './backend-call.ts'
import type { ForwardJob } from './forward-job.ts'
import type { StreamUsage } from '#contract/records/model-record.ts'
import { modelEntry, targetsOf } from './model-table.ts'

const ASK = { model: 'llama', messages: [{ role: 'user', content: 'hi' }], stream: true }
const OPTION = { stream_options: { include_usage: true } }

interface Changes {
  readonly fields?: object
  readonly mode?: StreamUsage
  readonly dialect?: Dialect
  readonly isMetered?: boolean
}

/** The request to a server of this mode, and whether its usage is hidden from the client. */
function sent({ fields = {}, mode, dialect = chatCompletions, isMetered = true }: Changes): { body: unknown; addsUsage: boolean } {
  const read = readRequest(Buffer.from(JSON.stringify({ ...ASK, ...fields })), dialect, { isMetered })
  if (read instanceof GatewayError) throw read
  const backend = { ...backendRecord({ endpoints: ['10.0.0.1:80'] }), ...(mode ? { streamUsage: mode } : {}) }
  const model = modelEntry(modelRecord({ backends: [backend] }), { allowLoopback: false }, undefined)
  const job: ForwardJob = { exchange: unsentExchange(), dialect, model, askedName: 'llama', stream: true, body: read.body, isMetered }
  const { body, addsUsage } = backendCall(job, read.body, targetsOf(model)[0]!, { forwarded: new Set(), credential: undefined })
  return { body: JSON.parse((body as Buffer).toString()), addsUsage }
}

describe('S2 the usage of a stream', () => {
  test.each([undefined, 'Inject' as const])('is asked for by default, and hidden: %s', (mode) => {
    expect(sent(mode ? { mode } : {})).toEqual({ body: { ...ASK, ...OPTION }, addsUsage: true })
  })

  test.each(['Native', 'Estimate'] as const)('is not asked for of a backend of streamUsage: %s', (mode) => {
    expect(sent({ mode })).toEqual({ body: ASK, addsUsage: false })
  })

  test.each(['Inject', 'Native', 'Estimate'] as const)('is shown to a client that asked for it: %s', (mode) => {
    expect(sent({ mode, fields: OPTION })).toEqual({ body: { ...ASK, ...OPTION }, addsUsage: false })
  })

  test('keeps the other options of the client', () => {
    const options = { include_obfuscation: false, include_usage: false }
    expect(sent({ fields: { stream_options: options } }).body).toEqual({ ...ASK, stream_options: { ...options, include_usage: true } })
  })

  test.each<[string, Changes]>([
    ['an answer that is not a stream', { fields: { stream: false } }],
    ['Messages, whose streams report it unasked', { dialect: messages }],
    ['an unmetered call', { isMetered: false }],
  ])('is not asked for in %s', (_what, changes) => {
    expect(sent(changes)).toEqual({ body: { ...ASK, ...changes.fields }, addsUsage: false })
  })
})
