/** ServedModel rows of the table in `manifests.ts`. */
import { type Manifest, type ManifestRow, names, refused, type Spec } from './manifest-row.ts'

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
      cacheSalt: 'None',
      backends: [{ ...service, weight: 100, engine: 'Other', messages: 'Translate', streamUsage: 'Inject' }],
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
        { ...service, weight: 0, engine: 'VLLM', routes: ['embeddings', 'audio/speech'], messages: 'Native', streamUsage: 'Estimate' },
        {
          name: 'far',
          url: 'https://models.acme.com:8443/base',
          upstreamModel: 'llama3',
          weight: 1000,
          authSecretRef: { name: 'far', key: 'api.key', header: 'x-api-key', scheme: 'Token' },
          headers: [
            { name: 'anthropic-version', value: '2023-06-01' },
            { name: 'x-b', value: 'a b; c="d"' },
          ],
        },
      ],
      timeouts: { firstByteSeconds: 10, idleSeconds: 20, totalSeconds: 10 },
      pricing: {
        ...{ inputPerMillion: '0.15', outputPerMillion: '0.60' },
        ...{ cachedInputPerMillion: '0', cacheWritePerMillion: '0.1875', perRequest: '0.000001' },
      },
      description: 'é'.repeat(512),
      contextTokens: 131_072,
      maxOutputTokens: 131_072,
      cacheSalt: 'Tenant',
      refusedFields: ['user', '_x-1'],
      forwardHeaders: ['X-Conversation-Id', 'x-a.b_c', 'x'.repeat(64)],
    }),
  },
  { name: 'a header that the operator leaves out', manifest: model({ forwardHeaders: ['Authorization'] }) },
  {
    name: 'a credential without a word before it',
    manifest: model({ backends: [{ ...service, authSecretRef: { name: 'far', scheme: '' } }] }),
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
      cacheSalt: 'None',
      backends: [{ ...service, weight: 100, engine: 'Other', messages: 'Translate', streamUsage: 'Inject' }],
      timeouts,
    },
  },
  { name: 'some time-outs keep the defaults of the others', manifest: model({ timeouts: { totalSeconds: 600 } }) },
  {
    name: 'the data key of a token has a default',
    manifest: model({ backends: [{ name: 'main', url: 'http://a.b', authSecretRef: { name: 'far' } }] }),
    spec: {
      allowedNamespaces: { from: 'Same' },
      cacheSalt: 'None',
      backends: [
        {
          name: 'main',
          url: 'http://a.b',
          authSecretRef: { name: 'far', key: 'token', header: 'Authorization' },
          weight: 100,
          engine: 'Other',
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
    ['inputPerMillion', 'outputPerMillion', ...(value === null ? [] : ['cachedInputPerMillion', 'cacheWritePerMillion', 'perRequest'])].map(
      (field) =>
        refused(
          `a price of ${JSON.stringify(value)} as ${field}`,
          `spec.pricing.${field}`,
          model({ pricing: { ...price, [field]: value } }),
        ),
    ),
  ),
  refused('a price for input alone', 'spec.pricing.outputPerMillion', model({ pricing: { inputPerMillion: '1' } })),
  refused('a price per call alone', 'spec.pricing.inputPerMillion', model({ pricing: { perRequest: '1', outputPerMillion: '0' } })),
  refused('prices in another currency', 'spec.pricing.currency', model({ pricing: { ...price, currency: 'EUR' } })),
  ...['contextTokens', 'maxOutputTokens'].flatMap((field) =>
    [0, -1, 1.5, 1_000_000_001, '4096'].map((value) =>
      refused(`${field} of ${JSON.stringify(value)}`, `spec.${field}`, model({ [field]: value })),
    ),
  ),
  refused(
    'answers longer than the context',
    'spec.maxOutputTokens',
    model({ contextTokens: 4096, maxOutputTokens: 4097 }),
    'spec#output-within-context',
  ),
  refused('an engine that is not known', 'spec.backends[0].engine', model({ backends: [{ ...service, engine: 'vllm' }] })),
  refused('a route that is not known', 'spec.backends[0].routes[0]', model({ backends: [{ ...service, routes: ['/v1/embeddings'] }] })),
  refused('a route twice', 'spec.backends[0].routes[1]', model({ backends: [{ ...service, routes: ['embeddings', 'embeddings'] }] })),
  refused('an unknown way to learn usage', 'spec.backends[0].streamUsage', model({ backends: [{ ...service, streamUsage: 'None' }] })),
]

const badModels: readonly ManifestRow[] = [
  refused('no backends', 'spec.backends', model({ backends: undefined })),
  refused('an empty list of backends', 'spec.backends', model({ backends: [] })),
  refused('17 backends', 'spec.backends', model({ backends: names(17).map((name) => ({ ...service, name })) })),
  refused('two backends of one name', 'spec.backends[1]', model({ backends: [service, service] })),
  refused('a backend without a name', 'spec.backends[0].name', model({ backends: [{ service: service.service }] })),
  refused('an unknown field of a backend', 'spec.backends[0].priority', model({ backends: [{ ...service, priority: 1 }] })),
  ...[{ name: 'a' }, { name: 'a', url: null }].map((backend) =>
    refused(
      `neither service nor url: ${JSON.stringify(backend)}`,
      'spec.backends[0]',
      model({ backends: [backend] }),
      'spec.backends[]#service-or-url',
    ),
  ),
  refused(
    'a backend with both service and url',
    'spec.backends[0]',
    model({ backends: [{ ...service, url: 'http://a.b' }] }),
    'spec.backends[]#not-service-and-url',
  ),
  refused(
    'no weight at all',
    'spec.backends',
    model({
      backends: [
        { ...service, weight: 0 },
        { name: 'b', url: 'http://a.b', weight: 0 },
      ],
    }),
    'spec.backends#some-weight',
  ),
  refused('a weight of 1001', 'spec.backends[0].weight', model({ backends: [{ ...service, weight: 1001 }] })),
  refused('port 0', 'spec.backends[0].service.port', model({ backends: [{ name: 'a', service: { name: 'a', port: 0 } }] })),
  refused('a port by name', 'spec.backends[0].service.port', model({ backends: [{ name: 'a', service: { name: 'a', port: 'http' } }] })),
  refused(
    'a Service of another namespace',
    'spec.backends[0].service.name',
    model({ backends: [{ name: 'a', service: { name: 'b.c', port: 80 } }] }),
  ),
  refused('an unknown kind of messages', 'spec.backends[0].messages', model({ backends: [{ ...service, messages: 'native' }] })),
  refused(
    'an authSecretRef without a name',
    'spec.backends[0].authSecretRef.name',
    model({ backends: [{ ...service, authSecretRef: {} }] }),
  ),
  refused('a pattern as a name', 'spec.servedName', model({ servedName: 'llama-*' })),
  refused('an alias twice', 'spec.aliases[1]', model({ aliases: ['a', 'a'] })),
  refused('17 aliases', 'spec.aliases', model({ aliases: names(17) })),
  refused('a URL of 2049 characters', 'spec.backends[0].url', atUrl(`http://a.b/${'x'.repeat(2038)}`)),
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
  ].map((url) => refused(`the url ${url}`, 'spec.backends[0].url', atUrl(url), 'spec.backends[].url#url-form')),
  ...['http://a.b/v1', 'http://a.b:8000/base/v1/'].map((url) =>
    refused(`the url ${url}`, 'spec.backends[0].url', atUrl(url), 'spec.backends[].url#url-no-version'),
  ),
  ...['http://user:password@a.b', 'http://a.b@evil.example', 'http://a.b/@c'].map((url) =>
    refused(`the url ${url}`, 'spec.backends[0].url', atUrl(url), 'spec.backends[].url#url-no-user-info'),
  ),
  ...[
    'http://metadata.google.internal',
    'http://METADATA.google.internal:80/x',
    'https://metadata.google.internal./',
    'http://metadata.goog/',
  ].map((url) => refused(`the url ${url}`, 'spec.backends[0].url', atUrl(url), 'spec.backends[].url#url-no-metadata-server')),
  refused(
    'from: Selector without a selector',
    'spec.allowedNamespaces.selector',
    model({ allowedNamespaces: { from: 'Selector' } }),
    'spec.allowedNamespaces#selector-iff-from-selector',
  ),
  ...[{}, { from: 'Same' }, { from: 'All' }].map((from) =>
    refused(
      `a selector beside ${JSON.stringify(from)}`,
      'spec.allowedNamespaces.selector',
      model({ allowedNamespaces: { ...from, selector: { matchLabels: { a: 'b' } } } }),
      'spec.allowedNamespaces#selector-iff-from-selector',
    ),
  ),
  ...[{}, { matchLabels: {} }, { matchLabels: {}, matchExpressions: [] }].map((selector) =>
    refused(
      `the empty selector ${JSON.stringify(selector)}`,
      'spec.allowedNamespaces.selector',
      selecting(selector),
      'spec.allowedNamespaces.selector#selector-not-empty',
    ),
  ),
  refused(
    'a malformed key in matchLabels',
    'spec.allowedNamespaces.selector.matchLabels',
    selecting({ matchLabels: { 'a b': 'c' } }),
    'spec.allowedNamespaces.selector.matchLabels#label-keys',
  ),
  ...[
    { key: 'a', operator: 'In' },
    { key: 'a', operator: 'NotIn', values: [] },
    { key: 'a', operator: 'Exists', values: ['b'] },
    { key: 'a', operator: 'DoesNotExist', values: ['b'] },
  ].map((expression) =>
    refused(
      `the expression ${JSON.stringify(expression)}`,
      'spec.allowedNamespaces.selector.matchExpressions[0].values',
      selecting({ matchExpressions: [expression] }),
      'spec.allowedNamespaces.selector.matchExpressions[]#values-with-in',
    ),
  ),
  ...[{ firstByteSeconds: 601, totalSeconds: 600 }, { totalSeconds: 599 }, { firstByteSeconds: 3600, totalSeconds: 3599 }].map((seconds) =>
    refused(
      `a first byte after the end: ${JSON.stringify(seconds)}`,
      'spec.timeouts.firstByteSeconds',
      model({ timeouts: seconds }),
      'spec.timeouts#first-byte-within-total',
    ),
  ),
  ...['', 'x y', 'x:y', '-x', 'x\n', 'x\r\nauthorization: y', 'ü', '*', 'x'.repeat(65), 1].map((name) =>
    refused(`the header ${JSON.stringify(name)}`, 'spec.forwardHeaders[0]', model({ forwardHeaders: [name] })),
  ),
  ...['', 'x y', '1x', 'a.b', 'x'.repeat(65)].map((field) =>
    refused(`the refused field ${JSON.stringify(field)}`, 'spec.refusedFields[0]', model({ refusedFields: [field] })),
  ),
  refused('33 refused fields', 'spec.refusedFields', model({ refusedFields: names(33) })),
  refused('an empty description', 'spec.description', model({ description: '' })),
  refused('a description of 513 characters', 'spec.description', model({ description: 'x'.repeat(513) })),
  refused('another salt', 'spec.cacheSalt', model({ cacheSalt: 'Key' })),
  refused('17 headers', 'spec.forwardHeaders', model({ forwardHeaders: names(17) })),
  refused('a header twice', 'spec.forwardHeaders[1]', model({ forwardHeaders: ['x-a', 'x-a'] })),
  ...['', 'x y', 'x:y', 'ü', 'x'.repeat(65)].flatMap((name) => [
    refused(
      `the fixed header ${JSON.stringify(name)}`,
      'spec.backends[0].headers[0].name',
      model({ backends: [{ ...service, headers: [{ name, value: 'x' }] }] }),
    ),
    refused(
      `the header ${JSON.stringify(name)} for a credential`,
      'spec.backends[0].authSecretRef.header',
      model({ backends: [{ ...service, authSecretRef: { name: 'far', header: name } }] }),
    ),
  ]),
  ...['', ' x', 'x ', 'x\r\nauthorization: y', 'ü', 'x'.repeat(257)].map((value) =>
    refused(
      `the value ${JSON.stringify(value)} of a fixed header`,
      'spec.backends[0].headers[0].value',
      model({ backends: [{ ...service, headers: [{ name: 'x-a', value }] }] }),
    ),
  ),
  ...['Bearer ', 'a b', 'x\r\ny', 'x'.repeat(33)].map((scheme) =>
    refused(
      `the scheme ${JSON.stringify(scheme)}`,
      'spec.backends[0].authSecretRef.scheme',
      model({ backends: [{ ...service, authSecretRef: { name: 'far', scheme } }] }),
    ),
  ),
  refused(
    '9 fixed headers',
    'spec.backends[0].headers',
    model({ backends: [{ ...service, headers: names(9).map((name) => ({ name, value: 'x' })) }] }),
  ),
  refused(
    'a fixed header twice',
    'spec.backends[0].headers[1]',
    model({
      backends: [
        {
          ...service,
          headers: [
            { name: 'x-a', value: '1' },
            { name: 'x-a', value: '2' },
          ],
        },
      ],
    }),
  ),
  refused('no time at all', 'spec.timeouts.idleSeconds', model({ timeouts: { idleSeconds: 0 } })),
]

export const SERVED_MODEL_MANIFESTS: readonly ManifestRow[] = [...goodModels, ...badPrices, ...badModels]
