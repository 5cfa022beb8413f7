/** `GET /v1/models` and `/v1/models/{id}`: exactly the models that a call with the same key may use, in a form that both SDKs parse. */
import type { KeyRecord } from '#contract/records/key-record.ts'
import { admits } from '#policy/model-access.ts'
import type { ModelEntry, VisibleModel } from '../upstream/model-table.ts'
import { allowedModel } from './near-model.ts'
import { identify, type RouteDeps, type RouteHandler, send } from './route.ts'

const MAX_REMEMBERED_BYTES = 8 * 2 ** 20
const ID_START = /^\/v1(?:\/v1)?\/models\//

export function listModels(deps: RouteDeps): RouteHandler {
  const answers = new ListAnswers()
  return async (exchange) => {
    const { record, turns } = identify(exchange, deps)
    await deps.turns.take(turns)
    if (exchange.response.closed) return // the client has left
    const visible = deps.models.visible(record.namespace)
    let body = answers.get(visible, record.models)
    if (body === undefined) {
      body = listBody(visible.filter(({ entry }) => admits(record, entry.names)))
      answers.set(visible, record.models, body)
    }
    send(exchange, body)
  }
}

/** Makes the handler of one model. The id may contain slashes, URL-encoded or not. It refuses models as a call does. */
export function oneModel(deps: RouteDeps): RouteHandler {
  return (exchange, path) => {
    const { record } = identify(exchange, deps)
    const model = decoded(path.replace(ID_START, ''))
    send(exchange, Buffer.from(JSON.stringify(modelObject(model, allowedModel(model, record, deps)))))
  }
}

function listBody(models: readonly VisibleModel[]): Buffer {
  const ends = { first_id: models[0]?.name ?? null, last_id: models.at(-1)?.name ?? null }
  return Buffer.from(
    JSON.stringify({ object: 'list', data: models.map(({ name, entry }) => modelObject(name, entry)), has_more: false, ...ends }),
  )
}

/** A cache of list bodies by visible models and scope, because building a list of thousands of models is expensive. */
class ListAnswers {
  readonly #answers = new Map<readonly VisibleModel[], Map<KeyRecord['models'], Buffer>>()
  #bytes = 0

  get(visible: readonly VisibleModel[], scope: KeyRecord['models']): Buffer | undefined {
    return this.#answers.get(visible)?.get(scope)
  }

  /** Stores a list. No request reads lists of former models again; they are dropped when the cache is full. */
  set(visible: readonly VisibleModel[], scope: KeyRecord['models'], body: Buffer): void {
    this.#bytes += body.length
    if (this.#bytes > MAX_REMEMBERED_BYTES) {
      this.#answers.clear()
      this.#bytes = body.length
    }
    const ofScopes = this.#answers.get(visible) ?? new Map<KeyRecord['models'], Buffer>()
    this.#answers.set(visible, ofScopes.set(scope, body))
  }
}

/** Builds a model object with the fields of both vendors. `created` is in seconds. */
function modelObject(id: string, { record }: ModelEntry): Readonly<Record<string, unknown>> {
  return {
    id,
    object: 'model',
    created: Math.floor(record.createdMs / 1000),
    owned_by: 'headgate',
    type: 'model',
    display_name: id,
    description: record.description,
    created_at: new Date(record.createdMs).toISOString(),
    max_model_len: record.contextTokens, // as vLLM and SGLang name it
  }
}

/** Decodes an id. An id with broken escapes stays as it is; no model has it. */
function decoded(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}
