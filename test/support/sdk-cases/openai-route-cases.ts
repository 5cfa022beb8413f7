/** Uses of the official OpenAI SDK by applications, on the routes beside chat completions. */
import OpenAI from 'openai'
import { endOf, hasText, isCounted, isStreamed, MAX_TOKENS, QUESTION, type SdkCases, type Via } from './sdk-case.ts'

const client = ({ openaiUrl, credential }: Via): OpenAI => new OpenAI({ apiKey: credential, baseURL: openaiUrl, maxRetries: 0 })
const completion = ({ model }: Via) => ({ model, max_tokens: MAX_TOKENS, prompt: QUESTION })
const response = ({ model }: Via) => ({ model, max_output_tokens: MAX_TOKENS, input: QUESTION })
const WEATHER = { type: 'function' as const, name: 'weather', strict: false, parameters: { type: 'object', properties: {} } }

function completionFacts({ object, choices, usage }: OpenAI.Completion): unknown {
  return {
    object,
    choices: choices.map(({ index, text, finish_reason }) => ({ index, text: hasText(text), end: endOf(finish_reason) })),
    usage: [usage?.prompt_tokens, isCounted(usage?.completion_tokens)],
  }
}

function responseFacts({ object, status, output, output_text, usage }: OpenAI.Responses.Response): unknown {
  return {
    object,
    status,
    types: output.map(({ type }) => type),
    text: hasText(output_text),
    usage: [usage?.input_tokens, isCounted(usage?.output_tokens)],
  }
}

/** Without the stream helper and structured output on responses: llama-server leaves out `output_index`, and ignores the schema. */
export const OPENAI_ROUTE_CASES: SdkCases = {
  'completions, plain': async (via) => completionFacts(await client(via).completions.create(completion(via))),
  'completions, streamed with usage': async (via) => {
    const stream = await client(via).completions.create({ ...completion(via), stream: true, stream_options: { include_usage: true } })
    let text = ''
    let pieces = 0
    let usage: OpenAI.CompletionUsage | null | undefined
    for await (const chunk of stream) {
      pieces += 1
      text += chunk.choices[0]?.text ?? ''
      usage = chunk.usage ?? usage
    }
    return { text: hasText(text), isStreamed: isStreamed(pieces), usage: [usage?.prompt_tokens, isCounted(usage?.completion_tokens)] }
  },
  'completions, a list of prompts': async (via) => {
    const { choices } = await client(via).completions.create({ ...completion(via), prompt: [QUESTION, 'Why?'] })
    return choices.map(({ index, text }) => [index, hasText(text)])
  },
  'completions, a stream that is left early': async (via) => {
    const stream = await client(via).completions.create({ ...completion(via), max_tokens: 2_000, stream: true })
    for await (const { choices } of stream) if (choices[0]?.text) break
    return stream.controller.signal.aborted
  },
  'responses, plain': async (via) => responseFacts(await client(via).responses.create(response(via))),
  'responses, instructions and several turns': async (via) => {
    const input: OpenAI.Responses.ResponseInput = [
      { role: 'user', content: QUESTION },
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'They are wet.', annotations: [] }],
      },
      { role: 'user', content: [{ type: 'input_text', text: 'More.' }] },
    ]
    return responseFacts(await client(via).responses.create({ ...response(via), instructions: 'You are brief.', input }))
  },
  'responses, streamed': async (via) => {
    const types: string[] = []
    let text = ''
    let last: OpenAI.Responses.Response | undefined
    for await (const event of await client(via).responses.create({ ...response(via), stream: true })) {
      types.push(event.type)
      if (event.type === 'response.output_text.delta') text += event.delta
      if (event.type === 'response.completed' || event.type === 'response.incomplete') last = event.response
    }
    const usage = [last?.usage?.input_tokens, isCounted(last?.usage?.output_tokens)]
    return { text: hasText(text), isStreamed: isStreamed(types.length), types: [...new Set(types)], usage }
  },
  'responses, tools that the model need not call': async (via) => {
    const { output } = await client(via).responses.create({ ...response(via), tools: [WEATHER], tool_choice: 'none' })
    return output.map(({ type }) => type)
  },
}
