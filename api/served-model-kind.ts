/** The definition of the kind ServedModel. */
import { SERVED_MODEL_CONDITIONS } from './conditions.ts'
import { AGE, type ApiKind, column, READY_REASON, READY_STATUS } from './kind.ts'
import { servedModels } from './resources.ts'
import { type ServedModel, servedModelSpec, servedModelStatus, type ServedModelSpec } from './served-model.ts'
import { selectorPlaces } from './label-selector.ts'
import { type Rule, type RulePlace, rulePlace } from './rule.ts'
import { shownText } from './manifest-error.ts'

type Backend = ServedModelSpec['backends'][number]

const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'
/** The host has ASCII characters only and no escapes, so that every URL parser reads the URL the same way. */
const BASE_URL = `^https?://(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9.])?)(:${PORT})?(/[A-Za-z0-9._~!$&()*+,;=:%/-]*)?$`
/** Host names at which clouds give credentials to any pod. The operator also checks addresses; the gateway repeats that when it connects. */
const METADATA_HOST = '^https?://metadata[.](google[.]internal|goog)[.]*([:/].*)?$'

const backendRules: readonly Rule<Backend>[] = [
  {
    id: 'not-service-and-url',
    cel: '!(has(self.service) && has(self.url))',
    reason: 'a backend has both service and url',
    remedy: 'remove one of the two',
    holds: (self) => self.service === undefined || self.url === undefined,
  },
  {
    id: 'service-or-url',
    cel: 'has(self.service) || has(self.url)',
    reason: 'a backend has neither service nor url',
    remedy: 'set service to a Service in this namespace, or url to the base URL of a server',
    holds: (self) => self.service !== undefined || self.url !== undefined,
  },
]

/** The URL that a host without a scheme probably means. A host without a port is one on the internet, so https. */
function withScheme(text: string): string | undefined {
  if (text.includes('://')) return undefined
  const scheme = /:\d+(\/|$)/.test(text) ? 'http' : 'https'
  const url = `${scheme}://${text.replace(/\/v1\/*$/, '')}`
  return new RegExp(BASE_URL).test(url) && shownText(url) !== undefined ? `did you mean ${url}?` : undefined
}

const urlRules: readonly Rule<string>[] = [
  {
    id: 'url-form',
    cel: `self.contains('@') || self.matches(r'${BASE_URL}')`,
    reason: 'url is not of the form http(s)://host[:port][/path]',
    remedy: 'write http:// or https://, a host, and where needed a port and a path; no query and no fragment',
    values: shownText,
    suggests: withScheme,
    holds: (self) => self.includes('@') || new RegExp(BASE_URL).test(self),
  },
  {
    id: 'url-no-version',
    cel: "!self.matches('/v1/*$')",
    reason: 'url ends in /v1, which the gateway appends itself',
    remedy: 'remove /v1 from the end',
    holds: (self) => !/\/v1\/*$/.test(self),
  },
  {
    id: 'url-no-user-info',
    cel: "!self.contains('@')",
    reason: 'url contains @, and a URL must not hold a password',
    remedy: 'put the token into a Secret and name that Secret in authSecretRef',
    holds: (self) => !self.includes('@'),
  },
  {
    id: 'url-no-metadata-server',
    cel: `!self.lowerAscii().matches(r'${METADATA_HOST}')`,
    reason: 'url names the metadata server of a cloud',
    remedy: 'use the URL of a model server',
    holds: (self) => !new RegExp(METADATA_HOST).test(self.toLowerCase()),
  },
]

const listRules: readonly Rule<readonly Backend[]>[] = [
  {
    id: 'some-weight',
    cel: 'self.exists(backend, !has(backend.weight) || backend.weight > 0)',
    reason: 'backends all have weight 0, so no request could be sent',
    remedy: 'set the weight of at least one backend above 0',
    holds: (self) => self.some((backend) => backend.weight > 0),
  },
]

/** Rules of ServedModel. */
const SERVED_MODEL_RULES: readonly RulePlace<ServedModel>[] = [
  rulePlace('spec', (model) => [model.spec], [
    {
      id: 'output-within-context',
      cel: '!has(self.maxOutputTokens) || !has(self.contextTokens) || self.maxOutputTokens <= self.contextTokens',
      field: '.maxOutputTokens',
      reason: 'maxOutputTokens is above contextTokens',
      remedy: 'lower maxOutputTokens or raise contextTokens',
      values: ({ maxOutputTokens, contextTokens }) => `${maxOutputTokens} and ${contextTokens}`,
      holds: (self) => self.maxOutputTokens === undefined || self.contextTokens === undefined || self.maxOutputTokens <= self.contextTokens,
    },
  ]),
  rulePlace('spec.allowedNamespaces', (model) => [model.spec.allowedNamespaces], [
    {
      id: 'selector-iff-from-selector',
      cel: "(has(self.from) && self.from == 'Selector') == has(self.selector)",
      field: '.selector',
      reason: 'selector and from: Selector must be used together',
      remedy: 'set both of them or neither',
      holds: (self) => (self.from === 'Selector') === (self.selector !== undefined),
    },
  ]),
  ...selectorPlaces<ServedModel>('spec.allowedNamespaces.selector', (model) => model.spec.allowedNamespaces.selector),
  rulePlace('spec.backends', (model) => [model.spec.backends], listRules),
  rulePlace('spec.backends[]', (model) => model.spec.backends, backendRules),
  rulePlace('spec.backends[].url', (model) => model.spec.backends.map(({ url }) => url), urlRules),
  rulePlace('spec.timeouts', (model) => [model.spec.timeouts], [
    {
      id: 'first-byte-within-total',
      cel: '!has(self.firstByteSeconds) || !has(self.totalSeconds) || self.firstByteSeconds <= self.totalSeconds',
      field: '.firstByteSeconds',
      reason: 'firstByteSeconds is above totalSeconds',
      remedy: 'lower firstByteSeconds, which is 600 where it is absent, or raise totalSeconds, which is 3600 where it is absent',
      values: ({ firstByteSeconds, totalSeconds }) => `${firstByteSeconds} and ${totalSeconds}`,
      holds: (self) => self.firstByteSeconds <= self.totalSeconds,
    },
  ]),
]

/** ServedModel: a model name that clients use, and the servers behind it. */
export const servedModelKind: ApiKind<ServedModel> = {
  resource: servedModels,
  shortName: 'sm',
  description: 'A model name that clients use, and the servers that serve it.',
  spec: servedModelSpec,
  specDescription: 'The name, who may use it, the servers, and what it costs.',
  status: servedModelStatus,
  rules: SERVED_MODEL_RULES,
  conditions: SERVED_MODEL_CONDITIONS,
  columns: [
    column('Ready', READY_STATUS, 'Whether the model can be called.'),
    column('Reason', READY_REASON, 'Reason of the condition Ready.'),
    column('Served-Name', '.status.servedName', 'The name that clients use.'),
    column('Backends', '.status.summary.backends', 'Backends that can be used, of all backends.'),
    column('Price', '.status.summary.price', 'Price of a million tokens: input/output.'),
    AGE,
    column('Aliases', '.status.summary.aliases', 'More names for the same model.', { wide: true }),
  ],
  selectable: ['.spec.servedName'],
  finalizer: undefined,
  recordKind: 'model',
}
