/** Every rule that no single field can express, per kind: CEL and its twin side by side. Order is the order in which faults are shown. */
import type { ApiKeySpec } from './apikey.ts'
import { LABEL_KEY, LABEL_KEY_PREFIX } from './metadata.ts'
import { type Located, type Rule, type RulePlace, rulePlace } from './rule.ts'
import type { ServedModelSpec } from './served-model.ts'

/** As much of an ApiKey as the rules read. */
export interface ApiKeyDocument {
  readonly metadata: { readonly name: string }
  readonly spec: ApiKeySpec
}

/** As much of a ServedModel as the rules read. */
export interface ServedModelDocument {
  readonly spec: ServedModelSpec
}

type Entries = Readonly<Record<string, string>>
type Backend = ServedModelSpec['backends'][number]
type Selector = NonNullable<ServedModelSpec['allowedNamespaces']['selector']>
type Expression = NonNullable<Selector['matchExpressions']>[number]

const SELECTOR = 'spec.allowedNamespaces.selector'
const OUR_PREFIX = 'headgate.dev/'
const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'
/** ASCII only and no escapes in the host, so that every URL parser reads it alike. */
const BASE_URL = `^https?://(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9.])?)(:${PORT})?(/[A-Za-z0-9._~!$&()*+,;=:%/-]*)?$`
/** Names under which clouds hand out credentials to any pod. Addresses are judged by the operator and again at connect. */
const METADATA_HOST = '^https?://metadata[.](google[.]internal|goog)[.]*([:/].*)?$'

const labelKeys: Rule<Entries> = {
  id: 'label-keys',
  cel: `self.all(key, key.matches(r'${LABEL_KEY}') && key.matches(r'${LABEL_KEY_PREFIX}'))`,
  reason: 'a key is not of the form [prefix/]name',
  cure: 'use letters, digits, ".", "_" and "-", at most 63 after the prefix, which is a DNS name',
  holds: (self) => Object.keys(self).every((key) => new RegExp(LABEL_KEY).test(key) && new RegExp(LABEL_KEY_PREFIX).test(key)),
}

const ownKeys: Rule<Entries> = {
  id: 'own-keys',
  cel: `self.all(key, !key.startsWith('${OUR_PREFIX}'))`,
  reason: `keys below ${OUR_PREFIX} belong to the operator`,
  cure: 'choose another prefix',
  holds: (self) => Object.keys(self).every((key) => !key.startsWith(OUR_PREFIX)),
}

function secretName(key: ApiKeyDocument): string {
  return key.spec.secret?.name ?? key.metadata.name
}

const CEL_SECRET_NAME = (self: string) =>
  `(has(${self}.spec.secret) && has(${self}.spec.secret.name) ? ${self}.spec.secret.name : ${self}.metadata.name)`

/** Rules of ApiKey. Those that must survive the removal of a field stand on its parent. */
export const API_KEY_RULES: readonly RulePlace<ApiKeyDocument>[] = [
  rulePlace('', (key) => [{ field: '', value: key }], [
    {
      id: 'secret-name-immutable',
      cel: `${CEL_SECRET_NAME('self')} == ${CEL_SECRET_NAME('oldSelf')}`,
      field: '.spec.secret.name',
      reason: 'secret.name (metadata.name where it is absent) cannot be changed',
      cure: 'put the old name back, or make another ApiKey for a Secret of another name',
      keeps: (self, old) => secretName(self) === secretName(old),
    },
  ]),
  rulePlace('spec', (key) => [{ field: 'spec', value: key.spec }], [
    {
      id: 'one-end',
      cel: '!(has(self.expirationTime) && has(self.ttlSeconds))',
      field: '.ttlSeconds',
      reason: 'ttlSeconds stands beside expirationTime, and a key has one end only',
      cure: 'remove one of them',
      holds: (self) => self.expirationTime === undefined || self.ttlSeconds === undefined,
    },
    {
      id: 'revoked-is-final',
      cel: "!has(oldSelf.state) || oldSelf.state != 'Revoked' || (has(self.state) && self.state == 'Revoked')",
      field: '.state',
      reason: 'state is Revoked, which is final',
      cure: 'leave it Revoked and make another ApiKey; Suspended is the state that can be lifted',
      keeps: (self, old) => old.state !== 'Revoked' || self.state === 'Revoked',
    },
  ]),
  rulePlace('spec.secret.template.labels', (key) => templateOf(key, 'labels'), [labelKeys, ownKeys]),
  rulePlace('spec.secret.template.annotations', (key) => templateOf(key, 'annotations'), [labelKeys, ownKeys]),
]

function templateOf(key: ApiKeyDocument, part: 'labels' | 'annotations'): Located<Entries>[] {
  return located(`spec.secret.template.${part}`, key.spec.secret?.template?.[part])
}

const backendRules: readonly Rule<Backend>[] = [
  {
    id: 'service-or-url',
    cel: 'has(self.service) != has(self.url)',
    reason: 'a backend has both service and url, or neither',
    cure: 'give it exactly one of them',
    holds: (self) => (self.service === undefined) !== (self.url === undefined),
  },
]

const urlRules: readonly Rule<string>[] = [
  {
    id: 'url-form',
    cel: `self.contains('@') || self.matches(r'${BASE_URL}')`,
    reason: 'url is not of the form http(s)://host[:port][/path]',
    cure: 'write http:// or https://, a host, a port where needed, and a path where needed; no query and no fragment',
    holds: (self) => self.includes('@') || new RegExp(BASE_URL).test(self),
  },
  {
    id: 'url-no-version',
    cel: "!self.matches('/v1/*$')",
    reason: 'url ends in /v1, which is appended to it',
    cure: 'leave /v1 out',
    holds: (self) => !/\/v1\/*$/.test(self),
  },
  {
    id: 'url-no-user-info',
    cel: "!self.contains('@')",
    reason: 'url contains @, and a URL is no place for a password',
    cure: 'put the token into a Secret and name it in authSecretRef',
    holds: (self) => !self.includes('@'),
  },
  {
    id: 'url-no-metadata-server',
    cel: `!self.lowerAscii().matches(r'${METADATA_HOST}')`,
    reason: 'url names the metadata server of a cloud',
    cure: 'name a model server',
    holds: (self) => !new RegExp(METADATA_HOST).test(self.toLowerCase()),
  },
]

const listRules: readonly Rule<readonly Backend[]>[] = [
  {
    id: 'some-weight',
    cel: 'self.exists(backend, !has(backend.weight) || backend.weight > 0)',
    reason: 'backends all have weight 0, so none would be called',
    cure: 'give one of them a weight above 0',
    holds: (self) => self.some((backend) => backend.weight > 0),
  },
]

const selectorRules: readonly Rule<Selector>[] = [
  {
    id: 'selector-not-empty',
    cel: '(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)',
    reason: 'selector is empty and would match every namespace',
    cure: 'add matchLabels or matchExpressions, or write from: All',
    holds: (self) => Object.keys(self.matchLabels ?? {}).length + (self.matchExpressions ?? []).length > 0,
  },
]

const expressionRules: readonly Rule<Expression>[] = [
  {
    id: 'values-with-in',
    cel: "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
    field: '.values',
    reason: 'values is missing with In or NotIn, or given with Exists or DoesNotExist',
    cure: 'give at least one value with In and NotIn, and none with the others',
    holds: (self) => ['In', 'NotIn'].includes(self.operator) === (self.values ?? []).length > 0,
  },
]

/** Rules of ServedModel. */
export const SERVED_MODEL_RULES: readonly RulePlace<ServedModelDocument>[] = [
  rulePlace('spec.allowedNamespaces', (model) => [{ field: 'spec.allowedNamespaces', value: model.spec.allowedNamespaces }], [
    {
      id: 'selector-iff-from-selector',
      cel: "(has(self.from) && self.from == 'Selector') == has(self.selector)",
      field: '.selector',
      reason: 'selector and from: Selector do not stand together',
      cure: 'write both or neither',
      holds: (self) => (self.from === 'Selector') === (self.selector !== undefined),
    },
  ]),
  rulePlace(SELECTOR, (model) => located(SELECTOR, model.spec.allowedNamespaces.selector), selectorRules),
  rulePlace(`${SELECTOR}.matchLabels`, (model) => located(`${SELECTOR}.matchLabels`, selectorOf(model).matchLabels), [labelKeys]),
  rulePlace(
    `${SELECTOR}.matchExpressions[]`,
    (model) => items(`${SELECTOR}.matchExpressions`, selectorOf(model).matchExpressions),
    expressionRules,
  ),
  rulePlace('spec.backends', (model) => located('spec.backends', model.spec.backends), listRules),
  rulePlace('spec.backends[]', (model) => items('spec.backends', model.spec.backends), backendRules),
  rulePlace('spec.backends[].url', urlsOf, urlRules),
  rulePlace('spec.timeouts', (model) => [{ field: 'spec.timeouts', value: model.spec.timeouts }], [
    {
      id: 'first-byte-within-total',
      cel: '!has(self.firstByteSeconds) || !has(self.totalSeconds) || self.firstByteSeconds <= self.totalSeconds',
      field: '.firstByteSeconds',
      reason: 'firstByteSeconds (600 where it is absent) is above totalSeconds (3600 where it is absent)',
      cure: 'lower firstByteSeconds or raise totalSeconds',
      holds: (self) => self.firstByteSeconds <= self.totalSeconds,
    },
  ]),
]

function selectorOf(model: ServedModelDocument): Selector {
  return model.spec.allowedNamespaces.selector ?? {}
}

function urlsOf(model: ServedModelDocument): Located<string>[] {
  return items('spec.backends', model.spec.backends).flatMap(({ field, value }) => located(`${field}.url`, value.url))
}

function located<Self>(field: string, value: Self | undefined): Located<Self>[] {
  return value === undefined ? [] : [{ field, value }]
}

function items<Self>(field: string, list: readonly Self[] | undefined): Located<Self>[] {
  return (list ?? []).map((value, index) => ({ field: `${field}[${index}]`, value }))
}
