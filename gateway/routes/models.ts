/** `GET /v1/models` and `/v1/models/{id}`: exactly what a call with the same key would allow, in a form that both SDKs parse. */
import { GatewayError } from '../errors.ts'
import type { Exchange } from '../http/exchange.ts'
import { requestIdHeaders } from '../http/request-id.ts'
import type { KeyRecord } from '../shared/key-record.ts'
import type { ModelEntry } from '../upstream/model-entry.ts'
import { type Authenticate, identify } from './identify.ts'
import type { RouteHandler } from './route.ts'

/** What the model routes need from the rest of the gateway. */
export interface ModelsDeps {
  readonly authenticate: Authenticate
  admits(record: KeyRecord, names: readonly string[]): boolean
  readonly models: {
    resolve(namespace: string, name: string): ModelEntry | undefined
    /** Every name that `resolve` answers for a namespace, sorted. */
    visible(namespace: string): readonly { readonly name: string; readonly entry: ModelEntry }[]
  }
}

const ID_START = /^\/v1(?:\/v1)?\/models\//

/** Handler of the list. */
export function listModels(deps: ModelsDeps): RouteHandler {
  return (exchange) => {
    const { record } = identify(exchange, deps.authenticate)
    const allowed = deps.models.visible(record.ns).filter(({ entry }) => deps.admits(record, entry.names))
    const data = allowed.map(({ name, entry }) => modelObject(name, entry))
    const ends = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
    sendJson(exchange, { object: 'list', data, has_more: false, ...ends })
  }
}

/** Handler of one model, whose id may hold slashes, URL-encoded or not. Refuses as a call does. */
export function oneModel(deps: ModelsDeps): RouteHandler {
  return (exchange, path) => {
    const { record } = identify(exchange, deps.authenticate)
    const model = decoded(path.replace(ID_START, ''))
    const entry = deps.models.resolve(record.ns, model)
    if (!deps.admits(record, entry?.names ?? [model])) throw new GatewayError('modelDenied', { model })
    if (!entry) throw new GatewayError('modelNotFound', { model })
    sendJson(exchange, modelObject(model, entry))
  }
}

/** Fields of both vendors' model objects in one. `created` counts seconds. */
function modelObject(id: string, { record }: ModelEntry): { id: string } & Record<string, unknown> {
  return {
    id,
    object: 'model',
    created: Math.floor(record.created / 1000),
    owned_by: 'headgate',
    type: 'model',
    display_name: id,
    created_at: new Date(record.created).toISOString(),
  }
}

/** An id whose escapes are broken is taken as it stands: no model has it. */
function decoded(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}

function sendJson({ response, requestId }: Exchange, value: object): void {
  const body = Buffer.from(JSON.stringify(value))
  const headers = requestIdHeaders(requestId)
  headers.push('content-type', 'application/json', 'content-length', String(body.length))
  response.writeHead(200, headers)
  response.end(body)
}
