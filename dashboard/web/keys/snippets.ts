/** Code samples for a new key. Only the sample for `.env` has the value of the key; the other samples read the value from the environment. Pure. */
import type { KeyView, PlanView } from '../../server/page-data/keys.ts'
import { callableModels } from './key-words.ts'

export interface Snippet {
  readonly name: '.env' | 'curl' | 'Python' | 'Node' | 'Anthropic'
  readonly text: string
}

export interface SnippetFacts {
  readonly value: string
  /** Base URL of the API, without /v1. */
  readonly apiURL: string
  readonly model: string
}

/** Stands in a text where the key may call no model yet. */
const NO_MODEL = 'MODEL'

export function snippets({ value, apiURL, model }: SnippetFacts): readonly Snippet[] {
  return [
    { name: '.env', text: `SERVICE_API_KEY=${value}\nSERVICE_BASE_URL=${apiURL}/v1` },
    { name: 'curl', text: curl(apiURL, model) },
    { name: 'Python', text: python(model) },
    { name: 'Node', text: node(model) },
    { name: 'Anthropic', text: anthropic(model) },
  ]
}

/** A model that the key may call: one that answers text, if there is one. */
export function modelFor({ models }: Pick<KeyView, 'models'>, plan: PlanView | undefined): string {
  const callable = plan === undefined ? [] : callableModels(models, plan)
  const priced = callable.filter(({ price }) => price !== undefined)
  const best = priced.find(({ price }) => Number(price?.output) > 0) ?? priced[0] ?? callable[0]
  return best?.name ?? models.find((entry) => !entry.includes('*')) ?? NO_MODEL
}

function curl(apiURL: string, model: string): string {
  const body = `{"model":${JSON.stringify(model)},\n       "messages":[{"role":"user","content":"Hello"}]}`
  return `curl ${apiURL}/v1/chat/completions \\
  -H "Authorization: Bearer $SERVICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${body.replaceAll("'", String.raw`'\''`)}'`
}

function python(model: string): string {
  return `import os
from openai import OpenAI

client = OpenAI(
    api_key=os.environ["SERVICE_API_KEY"],
    base_url=os.environ["SERVICE_BASE_URL"],
)
answer = client.chat.completions.create(
    model=${JSON.stringify(model)},
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`
}

function node(model: string): string {
  return `import OpenAI from 'openai'

const client = new OpenAI({
  apiKey: process.env.SERVICE_API_KEY,
  baseURL: process.env.SERVICE_BASE_URL,
})
const answer = await client.chat.completions.create({
  model: ${JSON.stringify(model)},
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(answer.choices[0].message.content)`
}

function anthropic(model: string): string {
  return `import os
from anthropic import Anthropic

client = Anthropic(
    auth_token=os.environ["SERVICE_API_KEY"],
    base_url=os.environ["SERVICE_BASE_URL"].removesuffix("/v1"),
)
answer = client.messages.create(
    model=${JSON.stringify(model)},
    max_tokens=200,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content[0].text)`
}
