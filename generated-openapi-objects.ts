/** The JSON that the gateway itself writes, as schemas of docs/openapi.yaml. A contract test compares them with real answers. */

type Schema = Readonly<Record<string, unknown>>

const TEXT: Schema = { type: 'string' }
const TEXT_OR_NULL: Schema = { type: ['string', 'null'] }
const INTEGER: Schema = { type: 'integer' }
/** Tokens, or money as decimal text. */
const UNITS: Schema = { type: ['integer', 'string'] }
const OWNER: Schema = { enum: ['key', 'account', 'plan'] }
const UNIT: Schema = { enum: ['Currency', 'Tokens'] }
const RATES = ['requests_per_minute', 'tokens_per_minute', 'concurrent_requests'] as const

/** An object with these fields alone. */
function exactly(properties: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name))
  return { type: 'object', required, properties, additionalProperties: false }
}

/** The schema of `error.metadata`, whose type is `RefusedLimitDetails`. */
const METADATA = exactly(
  {
    limit: { enum: [...RATES, 'budget', 'balance'] },
    budget: TEXT,
    unit: UNIT,
    owner: OWNER,
    needed: { type: ['integer', 'string', 'null'] },
    left: { type: ['integer', 'string', 'null'] },
    resetsAt: TEXT_OR_NULL,
  },
  ['budget', 'unit'],
)

/** Of contextOverflow, where the model server reports them. */
const SIZES = { n_prompt_tokens: INTEGER, n_ctx: INTEGER }
const NOT_ALWAYS = ['metadata', ...Object.keys(SIZES)]

/** The bodies of errors. */
export const API_ERRORS: Readonly<Record<string, Schema>> = {
  OpenAIError: exactly({
    error: exactly({ message: TEXT, type: TEXT, param: TEXT_OR_NULL, code: TEXT_OR_NULL, metadata: METADATA, ...SIZES }, NOT_ALWAYS),
  }),
  AnthropicError: exactly({
    type: { const: 'error' },
    error: exactly({ type: TEXT, message: TEXT, metadata: METADATA, ...SIZES }, NOT_ALWAYS),
    request_id: TEXT,
  }),
}

const MODEL = exactly(
  {
    id: TEXT,
    object: { const: 'model' },
    created: INTEGER,
    owned_by: TEXT,
    type: { const: 'model' },
    display_name: TEXT,
    description: TEXT,
    created_at: TEXT,
    max_model_len: INTEGER,
  },
  ['description', 'max_model_len'],
)
const MODELS = exactly({
  object: { const: 'list' },
  data: { type: 'array', items: MODEL },
  has_more: { const: false },
  first_id: TEXT_OR_NULL,
  last_id: TEXT_OR_NULL,
})
const LIMIT = exactly({ limit: { enum: RATES }, owner: OWNER, amount: INTEGER, left: INTEGER, resetsAt: TEXT_OR_NULL })
const BUDGET = exactly(
  {
    ...{ limit: { const: 'budget' }, budget: TEXT, unit: UNIT, window: TEXT, onExceeded: TEXT, owner: OWNER },
    ...{ amount: UNITS, used: UNITS, held: UNITS, left: UNITS, resetsAt: TEXT_OR_NULL },
  },
  ['onExceeded'],
)
const KEY = exactly({
  object: { const: 'key' },
  prefix: TEXT,
  expiresAt: TEXT_OR_NULL,
  models: { type: 'array', items: TEXT },
  limits: { type: 'array', items: LIMIT },
  budgets: { type: 'array', items: BUDGET },
})

const json = (schema: Schema): Schema => ({ 'application/json': { schema } })

/** The answers of the routes that call no model, by path. */
export const API_OBJECTS: Readonly<Record<string, Schema>> = {
  '/': { 'text/plain': { schema: TEXT } },
  '/v1/key': json(KEY),
  '/v1/models': json(MODELS),
  '/v1/models/{id}': json(MODEL),
}
