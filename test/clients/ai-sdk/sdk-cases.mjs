/**
 * Uses of the OpenAI provider of the Vercel AI SDK by applications. Its default form calls `/v1/responses`.
 *
 * Runs each case once and prints one line of JSON for each: its name, and facts that have to be the same directly and through the gateway (no ids, no
 * model name, no sampled text), or the error. The environment says where, as test/clients/sdk-run.ts lists it.
 */
import { createOpenAI } from '@ai-sdk/openai'
import { embed, embedMany, generateText, isStepCount, streamText, tool } from 'ai'
import { z } from 'zod'

const { OPENAI_URL, EMBEDDINGS_URL, SCRIPTED_URL, API_KEY, MODEL, EMBEDDINGS_MODEL, SCRIPTED_MODEL, CUT_MODEL } = process.env
globalThis.AI_SDK_LOG_WARNINGS = false // it tells of settings that a route lacks

const LONGEST_ERROR = 300
const MAX_TOKENS = 24 // the model is random, so every answer ends here
const QUESTION = 'Say something about canals.'
const TEXTS = [QUESTION, 'Why?', 'Grachtengürtel 🚤']
const limits = { maxOutputTokens: MAX_TOKENS, maxRetries: 0 }
const TURNS = [
  { role: 'user', content: QUESTION },
  { role: 'assistant', content: 'They are wet.' },
  { role: 'user', content: [{ type: 'text', text: 'More.' }] },
]

const real = createOpenAI({ baseURL: OPENAI_URL, apiKey: API_KEY })
const embedder = createOpenAI({ baseURL: EMBEDDINGS_URL, apiKey: API_KEY }).embedding(EMBEDDINGS_MODEL)
const scripted = createOpenAI({ baseURL: SCRIPTED_URL, apiKey: API_KEY })

const rounded = (vector) => vector.map((value) => Math.round(value * 1e4) / 1e4)
/** A random model may stop before the limit, so both count as the end of a good answer. */
const endOf = (reason) => (['stop', 'length'].includes(reason) ? 'ended' : reason)
const facts = ({ text, finishReason, usage }) => [text.length > 0, endOf(finishReason), usage.inputTokens, usage.outputTokens > 0]

async function plain(model, more = { prompt: QUESTION }) {
  return facts(await generateText({ ...limits, model, ...more }))
}

/** Text that arrives, how it ends, and what the application is told of a failure: thrown, or given to `onError`. */
async function readStream(model, more) {
  const errors = []
  const result = streamText({ ...limits, model, prompt: QUESTION, ...more, onError: ({ error }) => errors.push(error) })
  let text = ''
  let pieces = 0
  try {
    for await (const piece of result.textStream) {
      text += piece
      pieces += 1
    }
  } catch (error) {
    errors.push(error)
  }
  return { text, isStreamed: pieces > 1, errors, result }
}

async function streamed(model, more = {}) {
  const { text, isStreamed, errors, result } = await readStream(model, more)
  if (errors.length > 0) throw errors[0]
  return [isStreamed, ...facts({ text, finishReason: await result.finishReason, usage: await result.usage })]
}

/** A stream in which the provider finds an error: the text before the error arrives, and the application is told. */
async function failing(name, model) {
  const { text, errors } = await readStream(model, {})
  process.stderr.write(
    `${name}: ${errors
      .map((error) => error.message ?? JSON.stringify(error))
      .join('; ')
      .slice(0, LONGEST_ERROR)}\n`,
  )
  return [text.length > 0, errors.length > 0]
}

/** The scripted model calls the tool once, and its second answer repeats the output. */
const loop = () => ({
  prompt: 'Read number.txt with a command.',
  stopWhen: isStepCount(3),
  tools: {
    shell_command: tool({
      description: 'Runs a command.',
      inputSchema: z.object({ command: z.string() }),
      execute: async ({ command }) => (command === 'cat number.txt' ? 'number: 4711' : 'another command'),
    }),
  },
})

const cases = {
  'responses, plain': () => plain(real(MODEL)),
  'responses, a system prompt': () => plain(real(MODEL), { instructions: 'Be brief.', prompt: QUESTION }),
  'responses, tools that the model must not call': () => plain(real(MODEL), { ...loop(), toolChoice: 'none' }),
  // llama-server leaves out `output_index` and other fields that the provider wants
  'responses, streamed, events with missing fields': () => failing('events with missing fields', real(MODEL)),
  'responses, streamed, scripted': () => streamed(scripted(SCRIPTED_MODEL)),
  'responses, several turns, scripted': () => plain(scripted(SCRIPTED_MODEL), { messages: TURNS }),
  'responses, a tool loop, scripted': async () => {
    const { text, steps } = await generateText({ ...limits, model: scripted(SCRIPTED_MODEL), ...loop() })
    return [text, steps.length]
  },
  'responses, a streamed tool loop, scripted': async () => {
    const result = streamText({ ...limits, model: scripted(SCRIPTED_MODEL), ...loop() })
    return [await result.text, (await result.steps).length]
  },
  'responses, a stream that is left early': async () => {
    const abort = new AbortController()
    const options = { ...limits, maxOutputTokens: 2_000, prompt: QUESTION, abortSignal: abort.signal, onError: () => undefined }
    for await (const _ of streamText({ ...options, model: real(MODEL) }).textStream) abort.abort()
    return abort.signal.aborted
  },
  'responses, a stream that breaks, scripted': () => failing('a stream that breaks', scripted(CUT_MODEL)),
  'chat, plain': () => plain(real.chat(MODEL), { messages: TURNS }),
  'chat, streamed': () => streamed(real.chat(MODEL), { prompt: undefined, messages: TURNS }),
  'completions, plain': () => plain(real.completion(MODEL)),
  'completions, streamed': () => streamed(real.completion(MODEL)),
  'embeddings, one text': async () => {
    const { embedding, usage } = await embed({ model: embedder, value: QUESTION, maxRetries: 0 })
    return [rounded(embedding), usage.tokens]
  },
  'embeddings, several texts': async () => (await embedMany({ model: embedder, values: TEXTS, maxRetries: 0 })).embeddings.map(rounded),
}

for (const [name, run] of Object.entries(cases)) {
  const line = await run().then(
    (value) => ({ case: name, facts: value }),
    (error) => ({ case: name, error: String(error).replaceAll(API_KEY, '<key>').slice(0, LONGEST_ERROR) }),
  )
  process.stdout.write(`${JSON.stringify(line)}\n`)
}
