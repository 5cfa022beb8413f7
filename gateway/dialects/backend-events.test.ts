import { describe, expect, test } from 'vitest'
import { anthropicEvents, openaiEvents, responsesEvents } from './backend-events.ts'

describe('OpenAI streams', () => {
  test.each([
    ['data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}\n\n', 'content'],
    ['data: {"choices":[{"delta":{"content":"\\"finish_reason\\":\\"stop\\" and \\"error\\""},"finish_reason":null}]}\n\n', 'content'],
    ['data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n', 'finish'],
    ['data: {"choices":[{"delta":{}, "finish_reason" : "length"}]}\n\n', 'finish'],
    ['data: [DONE]\n\n', 'end'],
    ['data:[DONE]\r\n\r\n', 'end'],
    ['data: {"error":{"message":"boom","code":500}}\n\n', 'error'],
    ['data: {"object":"error","message":"boom","code":400}\n\n', 'error'],
    ['data: {"choices":[{"delta":{"content":"a"},"finish_reason":""}]}\n\n', 'content'],
    ['data: {"error":null,"choices":[]}\n\n', 'content'],
    ['data: {"error":{"message":"boom"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}\n\n', 'error'],
    ['data: {"error":null,"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n', 'finish'],
    ['event: error\ndata: {"message":"boom"}\n\n', 'error'],
    ['data: {"choices":[{"delta":{"content":{"error":1}}}]}\n\n', 'content'],
    ['data: "error\n\n', 'content'],
    [': ping\n\n', 'comment'],
    ['\n', 'comment'],
    ['retry: 100\n\n', 'drop'],
    ['data:\n\n', 'drop'],
    ['data: \n\n', 'drop'],
    ['event: ping\n\n', 'drop'],
  ])('%j is %s', (event, kind) => {
    expect(openaiEvents.kindOf(Buffer.from(event))).toBe(kind)
  })
})

describe('Anthropic streams', () => {
  test.each([
    ['event: message_start\ndata: {"type":"message_start","message":{"stop_reason":null}}\n\n', 'start'],
    ['event: content_block_delta\ndata: {"delta":{"text":"\\"error\\""}}\n\n', 'content'],
    ['event: message_delta\ndata: {"delta":{"stop_reason":"end_turn"}}\n\n', 'finish'],
    ['event: message_delta\ndata: {"delta":{"stop_reason":null}}\n\n', 'content'],
    ['event: message_delta\ndata: {"delta":{"stop_reason":""}}\n\n', 'content'],
    ['event: message_stop\ndata: {"type":"message_stop"}\n\n', 'end'],
    ['event: error\ndata: {"code":500,"message":"boom"}\n\n', 'error'],
    ['data: {"error":{"message":"boom"}}\n\n', 'error'],
    ['event: ping\ndata: {"type":"ping"}\n\n', 'content'],
    ['event: ping\n\n', 'drop'],
    ['event: content_block_delta\n\n', 'drop'],
    [': x\n\n', 'comment'],
    ['event: content_block_delta\ndata: {}\nevent: error\ndata: {}\n\n', 'error'], // the last name counts
    ['event: content_block_delta\r\ndata: {}\r\nevent: message_stop\r\n\r\n', 'end'],
    ['event: content_block_delta\ndata: {}\rid: 1\revent: error\n\n', 'error'],
  ])('%j is %s', (event, kind) => {
    expect(anthropicEvents.kindOf(Buffer.from(event))).toBe(kind)
  })
})

describe('Responses streams', () => {
  test.each([
    ['event: response.output_text.delta\ndata: {"delta":"\\"error\\""}\n\n', 'content'],
    ['event: response.output_text.delta\ndata: {}\nevent: error\ndata: {}\n\n', 'error'],
    ['event: response.output_text.delta\r\ndata: {}\r\nevent: response.completed\r\n\r\n', 'end'],
    ['event: response.output_text.delta\n\n', 'drop'],
  ])('%j is %s', (event, kind) => {
    expect(responsesEvents.kindOf(Buffer.from(event))).toBe(kind)
  })
})

describe('the event that names the usage', () => {
  const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
  const chunk = (data: object): Buffer => Buffer.from(`data: ${JSON.stringify(data)}\n\n`)
  const event = (name: string, data: object): Buffer => Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)

  test('of a chat stream may contain nothing else', () => {
    expect(openaiEvents.usageOf(chunk({ choices: [], usage }))).toMatchObject({
      report: { promptTokens: 7, outputTokens: 3 },
      isAlone: true,
    })
    expect(openaiEvents.usageOf(chunk({ choices: [{ delta: {} }], usage }))).toMatchObject({ isAlone: false })
    expect(openaiEvents.usageOf(chunk({ usage }))).toMatchObject({ isAlone: false })
  })

  test.each([
    [{ choices: [{ delta: { content: 'x' } }], usage: null }],
    [{ choices: [{ delta: { content: '"usage": {"prompt_tokens":1}' } }] }],
    [{ choices: [], usage: {} }],
    [{ choices: [{ delta: {}, usage: { prompt_tokens: 7 } }] }],
  ])('is not %j', (data) => {
    expect(openaiEvents.usageOf(chunk(data))).toBeUndefined()
  })

  test('of a stream of messages is its start, and its delta', () => {
    expect(anthropicEvents.usageOf(event('message_start', { message: { usage: { input_tokens: 5, output_tokens: 1 } } }))).toMatchObject({
      report: { freshTokens: 5, outputTokens: undefined }, // the answer has only begun
      isAlone: false,
    })
    expect(anthropicEvents.usageOf(event('message_delta', { usage: { output_tokens: 9 } }))).toMatchObject({ report: { outputTokens: 9 } })
  })
})
