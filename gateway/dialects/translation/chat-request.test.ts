import { describe, expect, it } from 'vitest'
import { type Engine, ENGINES } from '#contract/values/call-routes.ts'
import { GatewayError } from '../../errors.ts'
import type { JsonObject } from '../json-body.ts'
import { chatRequest } from './chat-request.ts'
import { ENGINE_TRAITS } from './engine-traits.ts'

const USER = { role: 'user', content: 'hi' }
const use = (id: string, input: JsonObject = {}): JsonObject => ({ type: 'tool_use', id, name: 'read', input })
const result = (id: string, content?: unknown): JsonObject => ({ type: 'tool_result', tool_use_id: id, content })
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const TOOL = { name: 'read', description: 'Reads.', input_schema: { type: 'object', properties: { path: { type: 'string' } } } }

interface Translated {
  readonly [field: string]: unknown
  readonly messages: readonly JsonObject[]
}

function made(body: JsonObject, engine: Engine = 'LlamaCpp', tokensLeft?: number): { fields: Translated; headers: string[] } {
  const { fields, changes } = chatRequest(
    { model: 'm', max_tokens: 10, messages: [USER], ...body },
    { traits: ENGINE_TRAITS[engine], tokensLeft },
  )
  return { fields: fields as Translated, headers: changes.headers() }
}

const messagesOf = (messages: readonly JsonObject[], engine?: Engine): readonly JsonObject[] => made({ messages }, engine).fields.messages

function refusal(body: JsonObject, engine?: Engine): string {
  try {
    made(body, engine)
  } catch (error) {
    if (error instanceof GatewayError) return `${error.row.id}: ${error.message}`
  }
  throw new Error('the request was translated')
}

describe('messages', () => {
  it('have the system text first, and text as a string', () => {
    const system = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ]
    expect(made({ system, messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] }).fields.messages).toEqual([
      { role: 'system', content: 'a\n\nb' },
      USER,
    ])
  })

  it('X11: keep a system message where it stood, after the results of the calls before it', () => {
    const messages = [
      USER,
      { role: 'assistant', content: [use('c1')] },
      { role: 'system', content: 'note' },
      { role: 'user', content: [result('c1', 'r')] },
    ]
    expect(messagesOf(messages).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'system'])
    const between = [USER, { role: 'system', content: 'note' }, { role: 'user', content: 'go' }]
    expect(messagesOf(between)).toEqual([USER, { role: 'system', content: 'note' }, { role: 'user', content: 'go' }])
  })

  it('X12: send reasoning back in the field of the server', () => {
    const messages = [
      USER,
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature: 's' }, use('c1')] },
      { role: 'user', content: [result('c1', 'r')] },
    ]
    expect(messagesOf(messages, 'DeepSeek')[1]).toMatchObject({ reasoning_content: 'hm', content: null })
    expect(messagesOf(messages, 'VLLM')[1]).toMatchObject({ reasoning: 'hm' })
    expect(made({ messages }, 'TGI').headers).toEqual(['x-headgate-dropped', 'messages.thinking'])
  })

  it('X12: keep the reasoning of assistant messages in a row', () => {
    const thought = (text: string): JsonObject => ({ type: 'thinking', thinking: text, signature: 's' })
    const messages = [
      { role: 'assistant', content: [thought('one'), { type: 'text', text: 'a' }] },
      { role: 'assistant', content: [thought('two'), use('c1')] },
      { role: 'user', content: [result('c1', 'r')] },
    ]
    expect(messagesOf(messages)[0]).toMatchObject({ reasoning_content: 'one\ntwo', content: 'a', tool_calls: [{ id: 'c1' }] })
  })

  it('X14: leave out a message of thinking alone for a server that takes none', () => {
    const messages = [USER, { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature: 's' }] }, USER]
    expect(messagesOf(messages, 'TGI')).toEqual([{ role: 'user', content: 'hi\n\nhi' }])
  })

  it('X14, X21: do without redacted and empty thinking beside calls', () => {
    const blocks = [{ type: 'redacted_thinking', data: 'x' }, { type: 'thinking', thinking: '', signature: '' }, use('c1'), use('c2')]
    const out = messagesOf([
      USER,
      { role: 'assistant', content: blocks },
      { role: 'user', content: [result('c2', 'two'), result('c1', 'one')] },
    ])
    expect(out.slice(1)).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: ['c1', 'c2'].map((id) => ({ id, type: 'function', function: { name: 'read', arguments: '{}' } })),
      },
      { role: 'tool', tool_call_id: 'c1', content: 'one' },
      { role: 'tool', tool_call_id: 'c2', content: 'two' },
    ])
  })

  it('X11: of one role in a row are one turn, also where they hold calls or results, as in the Messages API', () => {
    const out = messagesOf([
      USER,
      { role: 'assistant', content: [{ type: 'text', text: 'a' }, use('c1')] },
      { role: 'assistant', content: [use('c2')] },
      { role: 'user', content: [result('c2', [image]), { type: 'text', text: 'go' }] },
      { role: 'system', content: 'late' },
      { role: 'user', content: [result('c1', 'one')] },
      { role: 'user', content: 'on' },
    ])
    expect(out.slice(1)).toEqual([
      {
        ...{ role: 'assistant', content: 'a' },
        tool_calls: ['c1', 'c2'].map((id) => ({ id, type: 'function', function: { name: 'read', arguments: '{}' } })),
      },
      { role: 'tool', tool_call_id: 'c2', content: '' },
      { role: 'tool', tool_call_id: 'c1', content: 'one' },
      { role: 'system', content: 'late' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Image in the result of the tool call c2:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          { type: 'text', text: 'go' },
          { type: 'text', text: 'on' },
        ],
      },
    ])
  })

  it.each([
    ['a text', [{ role: 'user', content: 'go' }]],
    ['the result of another call', [{ role: 'user', content: [result('c2')] }]],
  ])('are refused where an assistant goes on after %s instead of a result', (_, between) => {
    const calls = { role: 'assistant', content: [use('c1'), use('c2')] }
    const reason = /^invalidField: .*messages\.1\.content\.0.* is a tool_use without a tool_result/
    expect(refusal({ messages: [USER, calls, ...between, { role: 'assistant', content: 'b' }] })).toMatch(reason)
    expect(refusal({ messages: [USER, calls, ...between, { role: 'assistant', content: [use('c3')] }] })).toMatch(reason)
    expect(refusal({ messages: [USER, calls, ...between] })).toMatch(reason)
  })

  it('X17: have images of the user as parts', () => {
    expect(messagesOf([{ role: 'user', content: [{ type: 'text', text: 'see' }, image] }])).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
        ],
      },
    ])
  })

  it('X18: move an image of a result into the user message after all results, and say whose it is', () => {
    const out = messagesOf([
      USER,
      { role: 'assistant', content: [use('c1'), use('c2')] },
      { role: 'user', content: [result('c1', [image]), result('c2', 'x'), { type: 'text', text: 'go' }] },
    ])
    expect(out.slice(2)).toEqual([
      { role: 'tool', tool_call_id: 'c1', content: '' },
      { role: 'tool', tool_call_id: 'c2', content: 'x' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Image in the result of the tool call c1:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          { type: 'text', text: 'go' },
        ],
      },
    ])
  })

  it('have results of calls: an error says so, an absent one is empty, and any other block is shown as JSON', () => {
    const contents: Array<[unknown, string]> = [
      [undefined, ''],
      ['x', 'x'],
      [
        [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
        'a\nb',
      ],
      [[{ type: 'tool_reference', tool_name: 't' }], '{"type":"tool_reference","tool_name":"t"}'],
    ]
    for (const [content, shown] of contents) {
      const block = result('c1', content)
      const turn = (more: JsonObject): readonly JsonObject[] =>
        messagesOf([USER, { role: 'assistant', content: [use('c1')] }, { role: 'user', content: [{ ...block, ...more }] }])
      expect(turn({})[2]?.content).toBe(shown)
      expect(turn({ is_error: true })[2]?.content).toBe(`Error: ${shown}`)
    }
  })

  it('of one role in a row become one', () => {
    const out = messagesOf([
      USER,
      { role: 'user', content: 'there' },
      { role: 'assistant', content: 'a' },
      { role: 'assistant', content: 'b' },
    ])
    expect(out).toEqual([
      { role: 'user', content: 'hi\n\nthere' },
      { role: 'assistant', content: 'a\n\nb' },
    ])
  })

  it('of one role in a row become one, however many, with and without images', () => {
    const turns = Array.from({ length: 20_000 }, () => ({ role: 'user', content: 'x' }))
    expect(messagesOf(turns)).toEqual([{ role: 'user', content: Array(20_000).fill('x').join('\n\n') }])
    const parts = messagesOf([{ role: 'user', content: [image] }, ...turns])[0]?.content as readonly JsonObject[]
    expect(parts).toHaveLength(20_001)
  })

  it('X19: refuse a PDF, a file and a document by URL, and take documents of text', () => {
    const sources = [
      { type: 'base64', media_type: 'application/pdf', data: 'x' },
      { type: 'url', url: 'http://x' },
      { type: 'file', file_id: 'f' },
    ]
    for (const source of sources) {
      const content = [
        { type: 'text', text: 'hi' },
        { type: 'document', source },
      ]
      expect(refusal({ messages: [{ role: 'user', content }] })).toMatch(
        /^untranslatable: Unsupported: messages\.0\.content\.1\.source is a document of type/,
      )
    }
    const document = { type: 'document', title: 'T', source: { type: 'text', media_type: 'text/plain', data: 'body' } }
    expect(messagesOf([{ role: 'user', content: [document] }])).toEqual([{ role: 'user', content: 'T\nbody' }])
  })

  it('refuse blocks of tools that Anthropic runs, calls without results, results without calls, and a request without content', () => {
    expect(
      refusal({ messages: [USER, { role: 'assistant', content: [{ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }] }] }),
    ).toMatch(/^untranslatable: Unsupported: messages\.1\.content\.0/)
    expect(refusal({ messages: [USER, { role: 'assistant', content: [use('c1')] }, USER] })).toMatch(
      /^invalidField: Invalid request: messages\.1\.content\.0/,
    )
    expect(refusal({ messages: [USER, { role: 'assistant', content: [use('c1')] }] })).toMatch(/^invalidField/)
    expect(refusal({ messages: [{ role: 'user', content: [result('c9', 'x')] }] })).toMatch(
      /^invalidField: Invalid request: messages\.0\.content\.0/,
    )
    expect(refusal({ messages: [{ role: 'user', content: [] }] })).toMatch(/^invalidField: Invalid request: messages must have content/)
    expect(refusal({ messages: [{ role: 'robot', content: 'x' }] })).toMatch(/^invalidField: Invalid request: messages\.0\.role/)
  })

  it('X24: keep the line of Claude Code and replace only its changing sum, so that turns share a prefix', () => {
    const system = (cch: string): JsonObject[] => [
      { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1; cc_entrypoint=cli; cch=${cch};` },
      { type: 'text', text: 'You are' },
    ]
    const texts = ['0a1b2', 'ffff9'].map((cch) => made({ system: system(cch) }).fields.messages[0]?.content)
    expect(texts).toEqual(Array(2).fill('x-anthropic-billing-header: cc_version=2.1; cc_entrypoint=cli; cch=00000;\n\nYou are'))
  })
})

describe('fields', () => {
  it('X13: turn reasoning off where the server has a switch', () => {
    const off = { thinking: { type: 'disabled' } }
    expect(made(off, 'VLLM').fields.chat_template_kwargs).toEqual({ enable_thinking: false })
    expect(made(off, 'DeepSeek').fields.thinking).toEqual({ type: 'disabled' })
    expect(made(off, 'TGI').headers).toEqual(['x-headgate-dropped', 'thinking'])
  })

  it('X15: send the effort where the server takes one, else name it', () => {
    const body = { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } }
    expect(made(body, 'VLLM')).toMatchObject({
      fields: { reasoning_effort: 'high' },
      headers: ['x-headgate-dropped', 'thinking', 'x-headgate-adjusted', 'output_config.effort'],
    })
    expect(made(body, 'TGI').headers).toEqual(['x-headgate-dropped', 'thinking, output_config.effort'])
  })

  it('X20: leave out a tool that Anthropic runs and name it, unless the choice is that tool', () => {
    const search = { type: 'web_search_20250305', name: 'web_search' }
    expect(made({ tools: [search, TOOL] })).toMatchObject({
      fields: { tools: [{ function: { name: 'read' } }] },
      headers: ['x-headgate-dropped', 'tools.web_search_20250305'],
    })
    expect(refusal({ tools: [search, TOOL], tool_choice: { type: 'tool', name: 'web_search' } })).toMatch(
      /^untranslatable: Unsupported: tools\.0/,
    )
    expect(refusal({ tools: [search], tool_choice: { type: 'any' } })).toMatch(/^untranslatable: Unsupported: tool_choice/)
  })

  it('X26: send a user as 32 digits of a hash', () => {
    const { user } = made({ metadata: { user_id: `user_${'x'.repeat(300)}` } }).fields
    expect(user).toMatch(/^[0-9a-f]{32}$/)
    expect(made({ metadata: { user_id: 'other' } }).fields.user).not.toBe(user)
  })

  it('X27: lower max_tokens to what is left, and name it', () => {
    expect(made({ max_tokens: 100 }, 'LlamaCpp', 40)).toMatchObject({
      fields: { max_tokens: 40 },
      headers: ['x-headgate-adjusted', 'max_tokens'],
    })
    expect(made({ max_tokens: 40 }, 'LlamaCpp', 40).headers).toEqual([])
  })

  it('X20: name the fields of tools that no server takes, and count what a client invents', () => {
    const tool = { ...TOOL, strict: true, defer_loading: true, cache_control: {}, mine: 1 }
    const body = { tools: [tool, tool], output_config: { budget: 1 }, metadata: { user_id: 'u', 'x\r\n': 1 } }
    expect(made(body).headers).toEqual(['x-headgate-dropped', 'tools.strict, tools.defer_loading, cache_control, unknown=4'])
    const odd = { type: `${'x'.repeat(70)}\r\nset-cookie: a`, name: 'odd' }
    expect(made({ tools: [odd, TOOL] }).headers).toEqual(['x-headgate-dropped', 'tools.unknown'])
  })

  it.each([
    [{ tool_choice: { type: 'constructor' } }, 'tool_choice.type'],
    [{ tool_choice: { type: 'tool' } }, 'tool_choice.name'],
    [{ messages: [USER, { role: 'assistant', content: [{ ...use('c1'), input: 'text' }] }] }, 'messages.1.content.0.input'],
    [{ system: [{ type: 'text', text: 'a' }, image] }, 'system.1'],
  ])('of a wrong type are refused by their name: %j', (body, field) => {
    expect(refusal({ tools: [TOOL], ...body })).toContain(`: ${field} `)
  })

  it('X15: name an effort that no server has', () => {
    expect(made({ output_config: { effort: 'constructor' } }, 'VLLM').headers).toEqual(['x-headgate-dropped', 'output_config.effort'])
  })

  it('have tools with a schema, and the choice among them', () => {
    const { fields } = made({ tools: [TOOL, { name: 'bare' }], tool_choice: { type: 'any', disable_parallel_tool_use: true } }, 'VLLM')
    expect(fields.tools).toEqual([
      { type: 'function', function: { name: 'read', description: 'Reads.', parameters: TOOL.input_schema } },
      { type: 'function', function: { name: 'bare', parameters: { type: 'object', properties: {} } } },
    ])
    expect(fields).toMatchObject({ tool_choice: 'required', parallel_tool_calls: false })
    expect(made({ tools: [TOOL], tool_choice: { type: 'tool', name: 'read' } }, 'VLLM').fields.tool_choice).toEqual({
      type: 'function',
      function: { name: 'read' },
    })
    expect(made({ tools: [], tool_choice: { type: 'auto' } }).fields).not.toHaveProperty('tool_choice')
  })

  it('offer llama.cpp the named tool alone, since it takes no name', () => {
    const asked = { tools: [TOOL, { name: 'bare' }], tool_choice: { type: 'tool', name: 'bare' } }
    const { fields, headers } = made(asked, 'LlamaCpp')
    const bare = { type: 'function', function: { name: 'bare', parameters: { type: 'object', properties: {} } } }
    expect(fields).toMatchObject({ tools: [bare], tool_choice: 'required' })
    expect(headers).toEqual(['x-headgate-adjusted', 'tools'])
    expect(refusal({ ...asked, tools: [TOOL] }, 'LlamaCpp')).toMatch(/tool_choice\.name is the name of no tool of the request/)
  })

  it('pass sampling, stop sequences and a schema of the answer', () => {
    const schema = { type: 'object' }
    const { fields } = made({
      temperature: 0,
      top_p: 0.5,
      top_k: 3,
      stop_sequences: ['END'],
      output_config: { format: { type: 'json_schema', schema } },
    })
    expect(fields).toMatchObject({ temperature: 0, top_p: 0.5, top_k: 3, stop: ['END'], response_format: { json_schema: { schema } } })
    expect(made({ top_k: 3 }, 'Other').headers).toEqual(['x-headgate-dropped', 'top_k'])
  })

  it('pass as many stop sequences as the server takes, and refuse more', () => {
    const many = (count: number): JsonObject => ({ stop_sequences: Array.from({ length: count }, (_, index) => `end ${index}`) })
    const taken = { VLLM: 100, SGLang: 100, LlamaCpp: 100, Ollama: 100, DeepSeek: 16, TGI: 4, Other: 4 } as const
    for (const engine of ENGINES) {
      expect(made(many(taken[engine]), engine).fields.stop, engine).toHaveLength(taken[engine])
      if (taken[engine] === 100) continue
      expect(refusal(many(taken[engine] + 1), engine), engine).toBe(
        `untranslatable: Unsupported: stop_sequences has ${taken[engine] + 1} entries; this model takes at most ${taken[engine]}`,
      )
    }
  })

  it('that are needless are named, unknown ones are counted, and neither reaches the server', () => {
    const { fields, headers } = made({ context_management: {}, 'x\r\ny': 1, newest: 2 })
    expect(headers).toEqual(['x-headgate-dropped', 'context_management, unknown=2'])
    expect(Object.keys(fields)).toEqual(['messages', 'max_tokens', 'stream'])
  })

  it('that reach other servers are refused', () => {
    expect(refusal({ mcp_servers: [{ url: 'http://x' }] })).toMatch(/^untranslatable: Unsupported: mcp_servers/)
    expect(made({ mcp_servers: [] }).headers).toEqual([])
  })
})
