/** The definition of the kind ServedModel. */
import { SERVED_MODEL_CONDITIONS } from './conditions.ts'
import { AGE, type ApiKind, READY_REASON, READY_STATUS } from './kind.ts'
import { servedModels } from './resources.ts'
import { SERVED_MODEL_RULES } from './served-model-rules.ts'
import { type ServedModel, servedModelSpec, servedModelStatus } from './served-model.ts'

/** ServedModel: a model name that clients use, and the servers behind it. */
export const servedModelKind: ApiKind<ServedModel> = {
  resource: servedModels,
  singular: 'servedmodel',
  shortName: 'sm',
  description: 'A model name that clients use, and the servers behind it.',
  spec: servedModelSpec,
  specDescription: 'The name, who may use it, the servers, and what it costs.',
  status: servedModelStatus,
  rules: SERVED_MODEL_RULES,
  conditions: SERVED_MODEL_CONDITIONS,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: READY_STATUS, description: 'Whether the model can be called.' },
    { name: 'Reason', type: 'string', jsonPath: READY_REASON, description: 'Reason of the condition Ready.' },
    { name: 'Served-Name', type: 'string', jsonPath: '.status.servedName', description: 'The name that clients use.' },
    { name: 'Backends', type: 'string', jsonPath: '.status.summary.backends', description: 'Backends that can be used, of all backends.' },
    { name: 'Price', type: 'string', jsonPath: '.status.summary.price', description: 'Price of a million tokens: input/output.' },
    AGE,
    { name: 'Aliases', type: 'string', jsonPath: '.status.summary.aliases', description: 'More names for the same model.', wide: true },
  ],
  selectable: ['.spec.servedName'],
  finalizer: undefined,
  recordKind: 'model',
}
