/** The definition of the kind ApiKey. */
import { type ApiKey, apiKeySpec, apiKeyStatus, FINALIZER } from './apikey.ts'
import { API_KEY_RULES } from './apikey-rules.ts'
import { API_KEY_CONDITIONS } from './conditions.ts'
import { AGE, type ApiKind, READY_REASON, READY_STATUS } from './kind.ts'
import { apiKeys } from './resources.ts'

/** ApiKey: one manifest is one working, enforced key. */
export const apiKeyKind: ApiKind<ApiKey> = {
  resource: apiKeys,
  singular: 'apikey',
  shortName: 'ak',
  description:
    'One working, enforced key to the models of this cluster. The operator writes its value into a Secret beside it, or takes the SHA-256 of a value that exists elsewhere.',
  spec: apiKeySpec,
  specDescription: 'What the key may do, how fast, for how much, and until when.',
  status: apiKeyStatus,
  rules: API_KEY_RULES,
  conditions: API_KEY_CONDITIONS,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: READY_STATUS, description: 'Whether the key works on every gateway now.' },
    { name: 'Reason', type: 'string', jsonPath: READY_REASON, description: 'Reason of the condition Ready.' },
    { name: 'Prefix', type: 'string', jsonPath: '.status.prefix', description: 'First 8 and last 4 characters of the key, or its hint.' },
    {
      name: 'Used',
      type: 'string',
      jsonPath: '.status.summary.used',
      description: 'The spent part of the budget of which the least is left.',
    },
    { name: 'Expires', type: 'string', jsonPath: '.status.expirationTime', description: 'When the key stops working.' },
    AGE,
    { name: 'Models', type: 'string', jsonPath: '.status.summary.models', description: 'Models that the key may call.', wide: true },
    { name: 'RPM', type: 'integer', jsonPath: '.spec.limits.requestsPerMinute', description: 'Most requests per minute.', wide: true },
    { name: 'TPM', type: 'integer', jsonPath: '.spec.limits.tokensPerMinute', description: 'Most tokens per minute.', wide: true },
    {
      name: 'Last-Used',
      type: 'date',
      jsonPath: '.status.lastUsedTime',
      description: 'Time since the key was last used, to the hour.',
      wide: true,
    },
    {
      name: 'Programmed',
      type: 'string',
      jsonPath: '.status.summary.programmed',
      description: 'Gateway pods that have acknowledged the key.',
      wide: true,
    },
  ],
  selectable: ['.spec.state', '.status.keyID'],
  finalizer: FINALIZER,
  recordKind: 'key',
}
