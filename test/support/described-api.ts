/** docs/openapi.yaml, as tests compare it with the requests and answers of a gateway. */
import { parse } from 'yaml'
import { read } from './documents.ts'
import { type Schema, SchemaCheck } from './schema-check.ts'

interface Content {
  readonly schema?: Schema
}
export interface DescribedAnswer {
  readonly description: string
  readonly headers: Readonly<Record<string, Schema>>
  readonly content?: Readonly<Record<string, Content>>
}
export interface DescribedOperation {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean }[]
  readonly security?: readonly Readonly<Record<string, unknown>>[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Required<Content>>> }
  readonly responses: Readonly<Record<string, DescribedAnswer | { readonly $ref: string }>>
}
interface Document {
  readonly openapi: string
  readonly info: Readonly<Record<string, unknown>>
  readonly security: readonly Readonly<Record<string, unknown>>[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
  readonly components: Readonly<Record<string, Readonly<Record<string, Schema>>>>
}

export const described = parse(read('docs/openapi.yaml')) as Document
export const check = new SchemaCheck({ ...described })

export function operationOf(method: string, path: string): DescribedOperation {
  const operation = described.paths[path]?.[method.toLowerCase()]
  if (!operation) throw new RangeError(`the document has no operation ${method} ${path}`)
  return operation
}

/** The schema of the body that a route takes. */
export function bodySchema(path: string): Schema {
  const [content] = Object.values(operationOf('POST', path).requestBody?.content ?? {})
  if (!content) throw new RangeError(`the document has no body of ${path}`)
  return content.schema
}

/** @returns undefined if the operation has no answer of this status */
export function answerOf(operation: DescribedOperation, status: number): DescribedAnswer | undefined {
  const answer = operation.responses[String(status)]
  return answer && '$ref' in answer ? (check.resolve(answer.$ref) as unknown as DescribedAnswer) : answer
}

/** Headers of the gateway's own that no answer has to describe: those of HTTP itself. */
const OF_HTTP = new Set(['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'])

/** @returns what an answer has that the document does not describe, in words; undefined: nothing */
export async function undescribed(response: Response, method: string, path: string): Promise<string | undefined> {
  const { status, headers } = response
  const text = await response.text()
  const answer = answerOf(operationOf(method, path), status)
  if (!answer) return `the status ${status}: ${text}`
  const header = [...headers.keys()].find((name) => !OF_HTTP.has(name) && !Object.hasOwn(answer.headers, name))
  if (header !== undefined) return `the header ${header} of ${status}: ${text}`
  if (method === 'HEAD') return answer.content === undefined ? undefined : `a body of ${status}, which HEAD has not`
  return undescribedBody(answer, headers.get('content-type') ?? '', text)
}

function undescribedBody({ content = {} }: DescribedAnswer, contentType: string, text: string): string | undefined {
  const [type = ''] = contentType.split(';')
  const known = content[type]
  if (!known) return `the type ${type}: ${text}`
  const value: unknown = type === 'application/json' ? JSON.parse(text) : text
  return known.schema && !check.accepts(known.schema, value) ? `the body: ${text}` : undefined
}
