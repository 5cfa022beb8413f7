/** The definition of the kind ApiKey. */
import { type ApiKey, apiKeySpec, apiKeyStatus, FINALIZER, type ApiKeySpec } from './apikey.ts'
import { API_KEY_CONDITIONS } from './conditions.ts'
import { AGE, type ApiKind, column, READY_REASON, READY_STATUS } from './kind.ts'
import { apiKeys } from './resources.ts'
import { budgetRules, limitsRules } from './limits.ts'
import { fourDigitYear, labelKeys, ownKeys } from './metadata.ts'
import { modelsTotal } from './model-list.ts'
import { type RulePlace, rulePlace } from './rule.ts'

function secretName(key: ApiKey): string {
  return key.spec.secret?.name ?? key.metadata.name
}

function sourceType(spec: ApiKeySpec): 'Generated' | 'Hash' {
  return spec.source?.type ?? 'Generated'
}

const celIsHash = (spec: string) => `(has(${spec}.source) && ${spec}.source.type == 'Hash')`

const celAccount = (spec: string) => `(has(${spec}.accountRef) ? ${spec}.accountRef.name : '')`

const CEL_SECRET_NAME = (self: string) =>
  `(has(${self}.spec.secret) && has(${self}.spec.secret.name) ? ${self}.spec.secret.name : ${self}.metadata.name)`

/** Rules of ApiKey. A rule that must also hold when its field is removed belongs to the parent of the field. */
const API_KEY_RULES: readonly RulePlace<ApiKey>[] = [
  rulePlace('', (key) => [key], [
    {
      id: 'secret-name-immutable',
      cel: `${CEL_SECRET_NAME('self')} == ${CEL_SECRET_NAME('oldSelf')}`,
      field: '.spec.secret.name',
      reason: 'secret.name (metadata.name where it is absent) cannot be changed',
      remedy: 'restore the old name, or create another ApiKey for a Secret with another name',
      keeps: (self, old) => secretName(self) === secretName(old),
    },
  ]),
  rulePlace('spec', (key) => [key.spec], [
    {
      id: 'one-end',
      cel: '!(has(self.expirationTime) && has(self.ttlSeconds))',
      field: '.ttlSeconds',
      reason: 'ttlSeconds and expirationTime are both set, and a key has one end only',
      remedy: 'remove one of the two',
      holds: (self) => self.expirationTime === undefined || self.ttlSeconds === undefined,
    },
    {
      id: 'revoked-is-final',
      cel: "!has(oldSelf.state) || oldSelf.state != 'Revoked' || (has(self.state) && self.state == 'Revoked')",
      field: '.state',
      reason: 'state is Revoked, which is final',
      remedy: 'leave it Revoked and create another ApiKey; to stop a key for a while, use Suspended',
      keeps: (self, old) => old.state !== 'Revoked' || self.state === 'Revoked',
    },
    {
      id: 'source-type-immutable',
      cel: `${celIsHash('self')} == ${celIsHash('oldSelf')}`,
      field: '.source.type',
      reason: 'source.type (Generated where it is absent) cannot be changed',
      remedy: 'restore the old type, or create another ApiKey for a key of the other type',
      keeps: (self, old) => sourceType(self) === sourceType(old),
    },
    {
      id: 'account-immutable',
      cel: `${celAccount('self')} == ${celAccount('oldSelf')}`,
      field: '.accountRef',
      reason: 'accountRef can be set only when the key is created, and cannot be changed',
      remedy: 'restore the old value, or create another ApiKey for another account',
      keeps: (self, old) => self.accountRef?.name === old.accountRef?.name,
    },
    {
      id: 'secret-of-generated',
      cel: `!has(self.secret) || !${celIsHash('self')}`,
      field: '.secret',
      reason: 'secret is set with source.type Hash, and no Secret is written for a value that exists elsewhere',
      remedy: 'remove secret',
      holds: (self) => self.secret === undefined || sourceType(self) !== 'Hash',
    },
    {
      id: 'rotation-of-hash',
      cel: `!has(self.rotation) || ${celIsHash('self')}`,
      field: '.rotation',
      reason: 'rotation is set with source.type Generated, and the value of such a key does not change',
      remedy: 'remove rotation; for a new value, create another ApiKey',
      holds: (self) => self.rotation === undefined || sourceType(self) === 'Hash',
    },
  ]),
  rulePlace('spec.source', (key) => [key.spec.source], [
    {
      id: 'hash-of-type-hash',
      cel: "self.type != 'Hash' || has(self.hash)",
      field: '.hash',
      reason: 'source.type is Hash, and source.hash is absent',
      remedy: 'set source.hash.sha256 to the SHA-256 of the value, or set type: Generated',
      holds: (self) => self.type !== 'Hash' || self.hash !== undefined,
    },
    {
      id: 'no-hash-of-type-generated',
      cel: "self.type == 'Hash' || !has(self.hash)",
      field: '.hash',
      reason: 'source.hash is set with source.type Generated',
      remedy: 'set type: Hash, or remove source.hash',
      holds: (self) => self.type === 'Hash' || self.hash === undefined,
    },
  ]),
  rulePlace('spec.models', (key) => [key.spec.models], [modelsTotal]),
  rulePlace('spec.expirationTime', (key) => [key.spec.expirationTime], [fourDigitYear('expirationTime')]),
  rulePlace('spec.limits', (key) => [key.spec.limits], limitsRules),
  rulePlace('spec.budgets[]', (key) => key.spec.budgets, budgetRules),
  rulePlace('spec.secret.template.labels', (key) => [key.spec.secret?.template?.labels], [labelKeys, ownKeys]),
  rulePlace('spec.secret.template.annotations', (key) => [key.spec.secret?.template?.annotations], [labelKeys, ownKeys]),
]

/** ApiKey: one manifest is one working, enforced key. */
export const apiKeyKind: ApiKind<ApiKey> = {
  resource: apiKeys,
  shortName: 'ak',
  description:
    'One working, enforced key to the models of this cluster. The operator writes its value into a Secret beside it, or takes the SHA-256 of a value that exists elsewhere.',
  spec: apiKeySpec,
  specDescription: 'What the key may do, how fast, for how much, and until when.',
  status: apiKeyStatus,
  rules: API_KEY_RULES,
  conditions: API_KEY_CONDITIONS,
  columns: [
    column('Ready', READY_STATUS, 'Whether the key works on every gateway now.'),
    column('Reason', READY_REASON, 'Reason of the condition Ready.'),
    column('Prefix', '.status.prefix', 'First 8 and last 4 characters of the key, or its hint.'),
    column('Account', '.spec.accountRef.name', 'The account of the key.', { wide: true }),
    column('Used', '.status.summary.used', 'The spent part of the budget of which the least is left.'),
    column('Expires', '.status.expirationTime', 'When the key stops working.'),
    AGE,
    column('Models', '.status.summary.models', 'The allow-list of the key. A plan may allow less.', { wide: true }),
    column('RPM', '.spec.limits.requestsPerMinute', 'Maximum number of requests per minute.', { type: 'integer', wide: true }),
    column('TPM', '.spec.limits.tokensPerMinute', 'Maximum number of tokens per minute.', { type: 'integer', wide: true }),
    column('Last-Used', '.status.lastUsedTime', 'Time since the key was last used, to the hour.', { type: 'date', wide: true }),
    column('Programmed', '.status.summary.programmed', 'Gateway pods that have acknowledged the key.', { wide: true }),
  ],
  selectable: ['.spec.state', '.spec.accountRef.name', '.status.keyID'],
  finalizer: FINALIZER,
  recordKind: 'key',
}
