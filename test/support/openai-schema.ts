/** OpenAI's published schema of a chat completion request. Every server of chat completions takes a part of it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

type JsonSchema = Parameters<typeof z.fromJSONSchema>[0]

const FILE = join(import.meta.dirname, '../golden/openai/chat-completion-request.json')
const schema = z.fromJSONSchema(JSON.parse(readFileSync(FILE, 'utf8')) as JsonSchema)

/** @returns what the schema finds wrong with a body; undefined: nothing. Fields that it does not know are allowed */
export function wrongChatRequest(body: unknown): string | undefined {
  const { error } = schema.safeParse(body)
  return error && z.prettifyError(error)
}
