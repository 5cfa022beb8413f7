/** ServedModel rows of the table in `manifests.ts`. */
import { type Manifest, type ManifestRow, names, type Spec } from './manifest-row.ts'

function model(spec: Spec, more: Partial<Manifest> = {}): Manifest {
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'ServedModel',
    metadata: { name: 'llama' },
    spec: { backends: [service], ...spec },
    ...more,
  }
}

const service = { name: 'main', service: { name: 'llama', port: 8080 } }
const atUrl = (url: unknown): Manifest => model({ backends: [{ name: 'main', url }] })
const selecting = (selector: unknown): Manifest => model({ allowedNamespaces: { from: 'Selector', selector } })
const timeouts = { firstByteSeconds: 600, idleSeconds: 120, totalSeconds: 3600 }

const goodModels: readonly ManifestRow[] = [
  {
    name: 'a Service is all that a model needs',
    manifest: model({}),
    spec: {
      allowedNamespaces: { from: 'Same' },
      backends: [{ ...service, weight: 100, messages: 'Translate', streamUsage: 'Inject' }],
      timeouts,
    },
  },
  {
    name: 'every field of a ServedModel at once',
    manifest: model({
      servedName: 'meta-llama/Llama-3.1:8b',
      aliases: ['llama', 'gpt-4o'],
      allowedNamespaces: {
        from: 'Selector',
        selector: {
          matchLabels: { 'kubernetes.io/metadata.name': 'shop' },
          matchExpressions: [
            { key: 'team', operator: 'In', values: ['a', 'b'] },
            { key: 'stage', operator: 'Exists' },
          ],
        },
      },
      backends: [
        { ...service, weight: 0, messages: 'Native', streamUsage: 'Estimate' },
        {
          name: 'far',
          url: 'https://models.acme.com:8443/base',
          upstreamModel: 'llama3',
          weight: 1000,
          authSecretRef: { name: 'far', key: 'api.key' },
        },
      ],
      timeouts: { firstByteSeconds: 10, idleSeconds: 20, totalSeconds: 10 },
      pricing: { inputPerMillion: '0.15', outputPerMillion: '0.60', cachedInputPerMillion: '0' },
      contextTokens: 131_072,
      maxOutputTokens: 131_072,
    }),
  },
  { name: 'a model that costs nothing', manifest: model({ pricing: { inputPerMillion: '0', outputPerMillion: '0.000000' } }) },
  { name: 'the dearest model', manifest: model({ pricing: { inputPerMillion: '999999999.999999', outputPerMillion: '1' } }) },
  { name: 'a bound of the answer alone', manifest: model({ maxOutputTokens: 1_000_000_000 }) },
  { name: 'all namespaces', manifest: model({ allowedNamespaces: { from: 'All' } }) },
  {
    name: 'empty and null objects get the defaults of their fields',
    manifest: model({ allowedNamespaces: {}, timeouts: null, aliases: [] }),
    spec: {
      aliases: [],
      allowedNamespaces: { from: 'Same' },
      backends: [{ ...service, weight: 100, messages: 'Translate', streamUsage: 'Inject' }],
      timeouts,
    },
  },
  { name: 'some time-outs keep the defaults of the others', manifest: model({ timeouts: { totalSeconds: 600 } }) },
  {
    name: 'the data key of a token has a default',
    manifest: model({ backends: [{ name: 'main', url: 'http://a.b', authSecretRef: { name: 'far' } }] }),
    spec: {
      allowedNamespaces: { from: 'Same' },
      backends: [
        {
          name: 'main',
          url: 'http://a.b',
          authSecretRef: { name: 'far', key: 'token' },
          weight: 100,
          messages: 'Translate',
          streamUsage: 'Inject',
        },
      ],
      timeouts,
    },
  },
  ...[
    'http://10.0.0.5:8000',
    'https://[fd00::1]:65535/',
    'http://model_server.lan./a/b%20c',
    'http://metadata.example.com',
    'http://metadata.google.internal.example.com',
  ].map((url) => ({ name: `the url ${url}`, manifest: atUrl(url) })),
  { name: 'a backend may be exchanged', manifest: atUrl('http://10.0.0.5'), previous: model({}) },
]

const price = { inputPerMillion: '1', outputPerMillion: '2' }

const badPrices: readonly ManifestRow[] = [
  ...['NaN', '1e309', '-1', '', '1.', '.5', '1.0000001', '1000000000', '1'.repeat(20), 0.15, null].flatMap((value) =>
    ['inputPerMillion', 'outputPerMillion', ...(value === null ? [] : ['cachedInputPerMillion'])].map((field) => ({
      name: `a price of ${JSON.stringify(value)} as ${field}`,
      manifest: model({ pricing: { ...price, [field]: value } }),
      refused: `spec.pricing.${field}`,
    })),
  ),
  { name: 'a price for input alone', manifest: model({ pricing: { inputPerMillion: '1' } }), refused: 'spec.pricing.outputPerMillion' },
  { name: 'prices in another currency', manifest: model({ pricing: { ...price, currency: 'EUR' } }), refused: 'spec.pricing.currency' },
  ...['contextTokens', 'maxOutputTokens'].flatMap((field) =>
    [0, -1, 1.5, 1_000_000_001, '4096'].map((value) => ({
      name: `${field} of ${JSON.stringify(value)}`,
      manifest: model({ [field]: value }),
      refused: `spec.${field}`,
    })),
  ),
  {
    name: 'answers longer than the context',
    manifest: model({ contextTokens: 4096, maxOutputTokens: 4097 }),
    refused: 'spec.maxOutputTokens',
    rule: 'spec#output-within-context',
  },
  {
    name: 'an unknown way to learn usage',
    manifest: model({ backends: [{ ...service, streamUsage: 'None' }] }),
    refused: 'spec.backends[0].streamUsage',
  },
]

const badModels: readonly ManifestRow[] = [
  { name: 'no backends', manifest: model({ backends: undefined }), refused: 'spec.backends' },
  { name: 'an empty list of backends', manifest: model({ backends: [] }), refused: 'spec.backends' },
  { name: '17 backends', manifest: model({ backends: names(17).map((name) => ({ ...service, name })) }), refused: 'spec.backends' },
  { name: 'two backends of one name', manifest: model({ backends: [service, service] }), refused: 'spec.backends[1]' },
  { name: 'a backend without a name', manifest: model({ backends: [{ service: service.service }] }), refused: 'spec.backends[0].name' },
  {
    name: 'an unknown field of a backend',
    manifest: model({ backends: [{ ...service, priority: 1 }] }),
    refused: 'spec.backends[0].priority',
  },
  ...[{ name: 'a' }, { name: 'a', url: null }].map((backend) => ({
    name: `neither service nor url: ${JSON.stringify(backend)}`,
    manifest: model({ backends: [backend] }),
    refused: 'spec.backends[0]',
    rule: 'spec.backends[]#service-or-url',
  })),
  {
    name: 'a backend with both service and url',
    manifest: model({ backends: [{ ...service, url: 'http://a.b' }] }),
    refused: 'spec.backends[0]',
    rule: 'spec.backends[]#not-service-and-url',
  },
  {
    name: 'no weight at all',
    manifest: model({
      backends: [
        { ...service, weight: 0 },
        { name: 'b', url: 'http://a.b', weight: 0 },
      ],
    }),
    refused: 'spec.backends',
    rule: 'spec.backends#some-weight',
  },
  { name: 'a weight of 1001', manifest: model({ backends: [{ ...service, weight: 1001 }] }), refused: 'spec.backends[0].weight' },
  {
    name: 'port 0',
    manifest: model({ backends: [{ name: 'a', service: { name: 'a', port: 0 } }] }),
    refused: 'spec.backends[0].service.port',
  },
  {
    name: 'a port by name',
    manifest: model({ backends: [{ name: 'a', service: { name: 'a', port: 'http' } }] }),
    refused: 'spec.backends[0].service.port',
  },
  {
    name: 'a Service of another namespace',
    manifest: model({ backends: [{ name: 'a', service: { name: 'b.c', port: 80 } }] }),
    refused: 'spec.backends[0].service.name',
  },
  {
    name: 'an unknown kind of messages',
    manifest: model({ backends: [{ ...service, messages: 'native' }] }),
    refused: 'spec.backends[0].messages',
  },
  {
    name: 'an authSecretRef without a name',
    manifest: model({ backends: [{ ...service, authSecretRef: {} }] }),
    refused: 'spec.backends[0].authSecretRef.name',
  },
  { name: 'a pattern as a name', manifest: model({ servedName: 'llama-*' }), refused: 'spec.servedName' },
  { name: 'an alias twice', manifest: model({ aliases: ['a', 'a'] }), refused: 'spec.aliases[1]' },
  { name: '17 aliases', manifest: model({ aliases: names(17) }), refused: 'spec.aliases' },
  { name: 'a URL of 2049 characters', manifest: atUrl(`http://a.b/${'x'.repeat(2038)}`), refused: 'spec.backends[0].url' },
  ...[
    ...[
      'ftp://a.b',
      'http:/a.b',
      '//a.b/cde',
      'HTTP://a.b',
      'http:///path',
      'http://:8080',
      'http://a.b:0',
      'http://a.b:65536',
      'http://a.b:',
    ],
    ...[
      'http://a.b?x=1',
      'http://a.b/#x',
      'http://a.b\\c',
      'http://a b',
      'http://ａ.b',
      'http://a%2eb',
      'http://-a.b',
      'http://[::1',
      ' http://a.b',
    ],
  ].map((url) => ({ name: `the url ${url}`, manifest: atUrl(url), refused: 'spec.backends[0].url', rule: 'spec.backends[].url#url-form' })),
  ...['http://a.b/v1', 'http://a.b:8000/base/v1/'].map((url) => ({
    name: `the url ${url}`,
    manifest: atUrl(url),
    refused: 'spec.backends[0].url',
    rule: 'spec.backends[].url#url-no-version',
  })),
  ...['http://user:password@a.b', 'http://a.b@evil.example', 'http://a.b/@c'].map((url) => ({
    name: `the url ${url}`,
    manifest: atUrl(url),
    refused: 'spec.backends[0].url',
    rule: 'spec.backends[].url#url-no-user-info',
  })),
  ...[
    'http://metadata.google.internal',
    'http://METADATA.google.internal:80/x',
    'https://metadata.google.internal./',
    'http://metadata.goog/',
  ].map((url) => ({
    name: `the url ${url}`,
    manifest: atUrl(url),
    refused: 'spec.backends[0].url',
    rule: 'spec.backends[].url#url-no-metadata-server',
  })),
  {
    name: 'from: Selector without a selector',
    manifest: model({ allowedNamespaces: { from: 'Selector' } }),
    refused: 'spec.allowedNamespaces.selector',
    rule: 'spec.allowedNamespaces#selector-iff-from-selector',
  },
  ...[{}, { from: 'Same' }, { from: 'All' }].map((from) => ({
    name: `a selector beside ${JSON.stringify(from)}`,
    manifest: model({ allowedNamespaces: { ...from, selector: { matchLabels: { a: 'b' } } } }),
    refused: 'spec.allowedNamespaces.selector',
    rule: 'spec.allowedNamespaces#selector-iff-from-selector',
  })),
  ...[{}, { matchLabels: {} }, { matchLabels: {}, matchExpressions: [] }].map((selector) => ({
    name: `the empty selector ${JSON.stringify(selector)}`,
    manifest: selecting(selector),
    refused: 'spec.allowedNamespaces.selector',
    rule: 'spec.allowedNamespaces.selector#selector-not-empty',
  })),
  {
    name: 'a malformed key in matchLabels',
    manifest: selecting({ matchLabels: { 'a b': 'c' } }),
    refused: 'spec.allowedNamespaces.selector.matchLabels',
    rule: 'spec.allowedNamespaces.selector.matchLabels#label-keys',
  },
  ...[
    { key: 'a', operator: 'In' },
    { key: 'a', operator: 'NotIn', values: [] },
    { key: 'a', operator: 'Exists', values: ['b'] },
    { key: 'a', operator: 'DoesNotExist', values: ['b'] },
  ].map((expression) => ({
    name: `the expression ${JSON.stringify(expression)}`,
    manifest: selecting({ matchExpressions: [expression] }),
    refused: 'spec.allowedNamespaces.selector.matchExpressions[0].values',
    rule: 'spec.allowedNamespaces.selector.matchExpressions[]#values-with-in',
  })),
  ...[{ firstByteSeconds: 601, totalSeconds: 600 }, { totalSeconds: 599 }, { firstByteSeconds: 3600, totalSeconds: 3599 }].map(
    (seconds) => ({
      name: `a first byte after the end: ${JSON.stringify(seconds)}`,
      manifest: model({ timeouts: seconds }),
      refused: 'spec.timeouts.firstByteSeconds',
      rule: 'spec.timeouts#first-byte-within-total',
    }),
  ),
  { name: 'no time at all', manifest: model({ timeouts: { idleSeconds: 0 } }), refused: 'spec.timeouts.idleSeconds' },
]

export const SERVED_MODEL_MANIFESTS: readonly ManifestRow[] = [...goodModels, ...badPrices, ...badModels]
