/** Sends one model call in either dialect, and checks the form of the gateway's answers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Lab } from './lab.ts'

/** The path of each wire format. */
export const PATHS = { openai: '/v1/chat/completions', anthropic: '/v1/messages' } as const
export type WireFormat = keyof typeof PATHS
export const WIRE_FORMATS: readonly WireFormat[] = ['openai', 'anthropic']

/** Message of row 25, from a gateway whose event loop is late. */
const SHED = '"message":"Gateway overloaded"'

export interface Question {
  readonly format?: WireFormat
  readonly credential?: string | undefined
  readonly model?: string
  /** Replaces the body made from `model`: an object is sent as JSON, any other value unchanged. */
  readonly body?: object | string | Buffer
  readonly fields?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: string
  readonly signal?: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export function smallBody(model: string, fields: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { model, max_tokens: 3, messages: [{ role: 'user', content: 'Say something.' }], ...fields }
}

export function callHeaders(credential: string | undefined): Record<string, string> {
  return { 'content-type': 'application/json', ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }) }
}

/**
 * Calls a gateway and keeps the answer for the search for issued values. A gateway on a busy machine may shed load: the call is repeated, as SDKs do.
 * @throws what fetch throws when no answer came
 */
export async function ask(lab: Pick<Lab, 'record'>, url: string, question: Question): Promise<Answer> {
  const giveUpMs = performance.now() + 60_000
  let answer = await askOnce(lab, url, question)
  while (answer.text.includes(SHED) && performance.now() < giveUpMs) {
    await sleep(Number(answer.headers.get('retry-after')) * 1_000, undefined, { signal: question.signal })
    answer = await askOnce(lab, url, question)
  }
  return answer
}

async function askOnce(lab: Pick<Lab, 'record'>, url: string, question: Question): Promise<Answer> {
  const { format = 'openai', credential, model = 'none', fields, query = '', headers, signal } = question
  const body = question.body ?? smallBody(model, fields)
  const answer = await fetch(`${url}${PATHS[format]}${query}`, {
    method: 'POST',
    headers: { ...callHeaders(credential), ...headers },
    body: typeof body === 'string' ? body : Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body),
    ...(signal ? { signal } : {}),
  })
  const text = await answer.text()
  lab.record(`${JSON.stringify(Object.fromEntries(answer.headers))}\n${text}`)
  return { status: answer.status, headers: answer.headers, text }
}

/** One row of the catalogue, written out, so that the tests do not depend on the product's own table. */
export interface ExpectedRow {
  readonly status: number
  readonly openai: readonly [type: string, code: string | null, param: string | null]
  readonly anthropic: string
  readonly starts: string
  /** `x-should-retry: false`; default true. */
  readonly isFinal?: boolean
  /** Where `Retry-After` must stand, in seconds. */
  readonly retryAfter?: number
  /** Limit that `error.metadata` names; without one there is no metadata. */
  readonly limit?: string
  /** Whose limit it is; default: of the key. */
  readonly owner?: 'key' | 'account'
  /** Whether the error has the sizes of the prompt and the context, as llama.cpp sends them. */
  readonly hasSizes?: boolean
}

/** Asserts status, envelope, message, retry headers and both request ids of a refusal. @returns its message */
export function expectRow(answer: Answer, format: WireFormat, row: ExpectedRow): string {
  expect([answer.status, answer.headers.get('content-type')], answer.text).toEqual([row.status, 'application/json'])
  const id = answer.headers.get('x-request-id')
  expect(id).toMatch(/^\S+$/)
  expect(answer.headers.get('request-id')).toBe(id)
  expect(answer.headers.get('x-should-retry')).toBe((row.isFinal ?? true) ? 'false' : null)
  expect(answer.headers.get('retry-after')).toBe(row.retryAfter?.toString() ?? null)
  expect(answer.headers.get('www-authenticate')).toBe(row.status === 401 ? 'Bearer' : null)
  const message = (JSON.parse(answer.text) as { error: { message: string } }).error.message
  const [type, code, param] = row.openai
  const metadata: unknown = row.limit && expect.objectContaining({ limit: row.limit, owner: row.owner ?? 'key' })
  const sizes: object = row.hasSizes === true ? { n_prompt_tokens: expect.any(Number), n_ctx: expect.any(Number) } : {}
  expect(JSON.parse(answer.text)).toEqual(
    format === 'openai'
      ? { error: { message, type, param, code, metadata, ...sizes } }
      : { type: 'error', error: { type: row.anthropic, message, metadata, ...sizes }, request_id: id },
  )
  expect(message.slice(0, row.starts.length)).toBe(row.starts)
  return message
}
