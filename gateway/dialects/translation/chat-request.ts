/**
 * A Messages request as the request of a chat completion. The new body is built from a list of known fields: nothing unknown is copied. A
 * field that a server does not need is left out and named; a field whose loss would change the meaning is refused (row 15).
 */
import { createHash } from 'node:crypto'
import { asObject, type JsonObject } from '../json-body.ts'
import { invalid } from '../request-shape.ts'
import { Changes } from './changes.ts'
import { chatMessages } from './chat-messages.ts'
import { shownType, unsupported } from './content-blocks.ts'
import type { EngineTraits } from './engine-traits.ts'

export interface ChatRequest {
  /** Without `model`, which the caller writes. */
  readonly fields: JsonObject
  readonly changes: Changes
}

export interface ChatServer {
  readonly traits: EngineTraits
  /** Tokens that an answer can have beside this prompt; undefined: unknown. */
  readonly tokensLeft?: number | undefined
}

/** @throws GatewayError, rows 11 and 15 */
export function chatRequest(body: JsonObject, { traits, tokensLeft }: ChatServer): ChatRequest {
  const changes = new Changes()
  const messages = chatMessages(body, traits, changes)
  const tools = chatTools(body, changes)
  const fields = {
    messages,
    ...(tools.length > 0 && toolsAndChoice(tools, body, { traits, changes })),
    ...cap(body, tokensLeft, changes),
    ...sampling(body, traits, changes),
    ...thinking(body, traits, changes),
    ...output(body, traits, changes),
    ...user(body, changes),
    stream: body.stream === true,
  }
  if (tools.length === 0) checkNoToolIsForced(body)
  noteRest(body, changes)
  return { fields, changes }
}

/** Fields that have a place in the new body, or need none. */
const KNOWN: ReadonlySet<string> = new Set([
  ...['model', 'messages', 'system', 'stream', 'tools', 'tool_choice', 'max_tokens', 'stop_sequences', 'temperature', 'top_p', 'top_k'],
  ...['thinking', 'output_config', 'output_format', 'metadata', 'mcp_servers'],
])
/** Known fields of the Messages API that no model server needs. */
const NEEDLESS: ReadonlySet<string> = new Set([
  'cache_control',
  'context_management',
  'container',
  'service_tier',
  'inference_geo',
  'speed',
  'betas',
])

function noteRest(body: JsonObject, changes: Changes): void {
  if (Array.isArray(body.mcp_servers) && body.mcp_servers.length > 0) throw unsupported('mcp_servers', 'cannot be reached by this model')
  for (const name of Object.keys(body)) {
    if (NEEDLESS.has(name)) changes.drop(name)
    else if (!KNOWN.has(name)) changes.dropUnknown()
  }
}

function chatTools(body: JsonObject, changes: Changes): JsonObject[] {
  if (body.tools === undefined || body.tools === null) return []
  if (!Array.isArray(body.tools)) throw invalid('tools', 'must be an array')
  return body.tools.flatMap((tool, index) => chatTool(asObject(tool) ?? {}, `tools.${index}`, { body, changes }))
}

interface ToolContext {
  readonly body: JsonObject
  readonly changes: Changes
}

/** A tool that Anthropic's servers run is left out, unless the client insists on it. */
function chatTool(tool: JsonObject, field: string, { body, changes }: ToolContext): JsonObject[] {
  const { name, description, type, input_schema: schema } = tool
  if (typeof name !== 'string' || name === '') throw invalid(`${field}.name`, 'must be a non-empty string')
  if (type === undefined || type === null || type === 'custom') {
    noteToolFields(tool, changes)
    const parameters = { type: 'object', properties: {}, ...asObject(schema) }
    return [{ type: 'function', function: { name, ...(typeof description === 'string' && { description }), parameters } }]
  }
  if (asObject(body.tool_choice)?.name === name)
    throw unsupported(field, `is a tool of type ${shownType(tool)}, which this model cannot use, and tool_choice names it`)
  changes.drop(`tools.${shownType(tool)}`)
  return []
}

const TOOL_FIELDS: ReadonlySet<string> = new Set(['name', 'description', 'type', 'input_schema'])
/** Known fields of a tool that no model server takes. */
const NEEDLESS_TOOL_FIELDS: ReadonlySet<string> = new Set([
  ...['defer_loading', 'input_examples', 'strict', 'eager_input_streaming', 'allowed_callers'],
])

function noteToolFields(tool: JsonObject, changes: Changes): void {
  for (const name of Object.keys(tool)) {
    if (name === 'cache_control') changes.drop(name)
    else if (NEEDLESS_TOOL_FIELDS.has(name)) changes.drop(`tools.${name}`)
    else if (!TOOL_FIELDS.has(name)) changes.dropUnknown()
  }
}

/** Counts the fields of an object that have no place in the new body. */
function noteUnknown(value: JsonObject | undefined, known: readonly string[], changes: Changes): void {
  for (const name of Object.keys(value ?? {})) if (!known.includes(name)) changes.dropUnknown()
}

const CHOICES: ReadonlyMap<unknown, string> = new Map([
  ['auto', 'auto'],
  ['any', 'required'],
  ['none', 'none'],
])

interface ChoiceContext {
  readonly traits: EngineTraits
  readonly changes: Changes
}

/** Where the server cannot be told the name of a tool, the named tool is the only one of the request, and a call is required. */
function toolsAndChoice(tools: readonly JsonObject[], body: JsonObject, { traits, changes }: ChoiceContext): JsonObject {
  const choice = toolChoice(body, traits, changes)
  const name = asObject(asObject(choice.tool_choice)?.function)?.name
  if (name === undefined || traits.takesToolName) return { tools, ...choice }
  const named = tools.filter((tool) => asObject(tool.function)?.name === name)
  if (named.length === 0) throw invalid('tool_choice.name', 'is the name of no tool of the request')
  if (named.length < tools.length) changes.adjust('tools')
  return { ...choice, tools: named, tool_choice: 'required' }
}

function toolChoice(body: JsonObject, traits: EngineTraits, changes: Changes): JsonObject {
  if (body.tool_choice === undefined || body.tool_choice === null) return {}
  const choice = asObject(body.tool_choice) ?? {}
  const named = choice.type === 'tool' ? namedTool(choice) : CHOICES.get(choice.type)
  if (named === undefined) throw invalid('tool_choice.type', 'must be auto, any, none or tool')
  if (choice.disable_parallel_tool_use !== true) return { tool_choice: named }
  if (traits.takesParallelCalls) return { tool_choice: named, parallel_tool_calls: false }
  changes.drop('tool_choice.disable_parallel_tool_use')
  return { tool_choice: named }
}

function namedTool({ name }: JsonObject): JsonObject {
  if (typeof name !== 'string' || name === '') throw invalid('tool_choice.name', 'must be a non-empty string')
  return { type: 'function', function: { name } }
}

/** Without a tool left, a choice of one would be refused by servers, and its loss would change the meaning. */
function checkNoToolIsForced({ tool_choice: choice }: JsonObject): void {
  const type = asObject(choice)?.type
  if (type === 'any' || type === 'tool')
    throw unsupported('tool_choice', 'demands a tool, and the request has none that this model can use')
}

function cap({ max_tokens: asked }: JsonObject, tokensLeft: number | undefined, changes: Changes): JsonObject {
  if (typeof asked !== 'number') return {}
  if (tokensLeft === undefined || asked <= tokensLeft) return { max_tokens: asked }
  changes.adjust('max_tokens')
  return { max_tokens: tokensLeft }
}

function sampling(body: JsonObject, traits: EngineTraits, changes: Changes): JsonObject {
  const { temperature, top_p: topP, top_k: topK } = body
  if (isSet(topK) && !traits.takesTopK) changes.drop('top_k')
  return {
    ...stops(body, traits),
    ...(isSet(temperature) && { temperature }),
    ...(isSet(topP) && { top_p: topP }),
    ...(isSet(topK) && traits.takesTopK && { top_k: topK }),
  }
}

/** Without one of its sequences, an answer would go on where the client expects its end. */
function stops({ stop_sequences: stop }: JsonObject, { maxStops }: EngineTraits): JsonObject {
  if (!Array.isArray(stop) || stop.length === 0) return {}
  if (stop.length > maxStops) throw unsupported('stop_sequences', `has ${stop.length} entries; this model takes at most ${maxStops}`)
  return { stop: stop as unknown[] }
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** A server reasons unless it is told not to. The size of the reasoning cannot be said. */
function thinking(body: JsonObject, traits: EngineTraits, changes: Changes): JsonObject {
  const wanted = asObject(body.thinking)
  if (wanted === undefined) return {}
  if (wanted.type === 'disabled' && traits.thinkingOff !== undefined) return traits.thinkingOff
  changes.drop('thinking')
  return {}
}

const EFFORTS: ReadonlyMap<unknown, string> = new Map([
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['xhigh', 'high'],
  ['max', 'high'],
])

function output(body: JsonObject, traits: EngineTraits, changes: Changes): JsonObject {
  const config = asObject(body.output_config) ?? {}
  noteUnknown(config, ['effort', 'format'], changes)
  return { ...effort(config, traits, changes), ...format(asObject(config.format) ?? asObject(body.output_format)) }
}

function effort({ effort: asked }: JsonObject, traits: EngineTraits, changes: Changes): JsonObject {
  if (!isSet(asked)) return {}
  const known = EFFORTS.get(asked)
  if (known === undefined || !traits.takesEffort) {
    changes.drop('output_config.effort')
    return {}
  }
  if (known !== asked) changes.adjust('output_config.effort')
  return { reasoning_effort: known }
}

function format(wanted: JsonObject | undefined): JsonObject {
  if (wanted === undefined) return {}
  if (wanted.type !== 'json_schema')
    throw unsupported('output_config.format', `has the type ${shownType(wanted)}; only json_schema can be sent to this model`)
  return { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: asObject(wanted.schema) ?? {}, strict: true } } }
}

/** The id of a user may hold names of devices and sessions, and servers bound its length. */
function user(body: JsonObject, changes: Changes): JsonObject {
  const metadata = asObject(body.metadata)
  noteUnknown(metadata, ['user_id'], changes)
  const id = metadata?.user_id
  return typeof id === 'string' && id !== '' ? { user: createHash('sha256').update(id).digest('hex').slice(0, 32) } : {}
}
