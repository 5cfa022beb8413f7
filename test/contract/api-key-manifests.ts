/** ApiKey rows of the table in `manifests.ts`. */
import { LIMIT_MANIFESTS } from './limit-manifests.ts'
import { key, KEY_NAME, keyWithSpec, type Manifest, type ManifestRow, names, refused, type Spec } from './manifest-row.ts'
import { SOURCE_MANIFESTS } from './source-manifests.ts'

const secret = (template: Spec): Manifest => key({ secret: { template } })
const entries = (count: number): Spec => Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, 'v']))

/** Different names of together `characters`. */
const longNames = (characters: number): string[] => {
  const full = names(Math.floor(characters / 250)).map((name) => name.padEnd(250, 'x'))
  return [...full, 'y'.repeat(characters % 250)]
}

const goodKeys: readonly ManifestRow[] = [
  { name: 'a list of models is all that a key needs', manifest: key({}), spec: { state: 'Active', models: ['*'] } },
  {
    name: 'every field of an ApiKey at once',
    manifest: key({
      displayName: 'Checkout bot',
      state: 'Suspended',
      models: ['llama-3.1-8b', 'qwen-*', '*instruct', '*', 'meta/llama:3.1@q4+x'],
      expirationTime: '2027-01-01T00:00:00.5+02:00',
      secret: {
        name: 'bot.key',
        retention: 'Keep',
        anthropicApiKey: 'Include',
        template: { labels: { team: 'shop', 'acme.io/Tier_1': '' }, annotations: { 'acme.io/why': 'any text' } },
      },
    }),
  },
  {
    name: 'the retention of a Secret has a default',
    manifest: key({ secret: {} }),
    spec: { state: 'Active', models: ['*'], secret: { retention: 'Keep' } },
  },
  {
    name: 'a null field is an absent one and gets its default',
    manifest: key({ displayName: null, state: null, secret: null }),
    spec: { state: 'Active', models: ['*'] },
  },
  {
    name: 'a null entry of a map is an absent one',
    manifest: secret({ labels: { a: null, b: 'c' } }),
    spec: { state: 'Active', models: ['*'], secret: { retention: 'Keep', template: { labels: { b: 'c' } } } },
  },
  { name: 'characters are counted, not their bytes or UTF-16 units', manifest: key({ displayName: '🔑'.repeat(63) }) },
  { name: 'the shortest and the longest life', manifest: key({ ttlSeconds: 60 }), previous: key({ ttlSeconds: 315_360_000 }) },
  { name: 'a model twice means it once', manifest: key({ models: ['a', 'b', 'a'] }), spec: { state: 'Active', models: ['a', 'b', 'a'] } },
  { name: '256 models', manifest: key({ models: names(256) }) },
  { name: 'models of 8192 characters together', manifest: key({ models: longNames(8192) }) },
  { name: '16 labels and 16 annotations', manifest: secret({ labels: entries(16), annotations: entries(16) }) },
  { name: 'a leap day', manifest: key({ expirationTime: '2028-02-29T23:59:59Z' }) },
  {
    name: 'the first and the last second that a status can hold',
    manifest: key({ expirationTime: '0001-01-01T00:00:00Z' }),
    previous: key({ expirationTime: '9999-12-31T23:59:59.999Z' }),
  },
  { name: 'an offset that leads back into the year 9999', manifest: key({ expirationTime: '9999-12-31T23:59:59+14:00' }) },
  { name: 'a prefix that only resembles ours', manifest: secret({ labels: { 'my-headgate.dev/a': 'b', 'headgate.dev': 'c' } }) },
  { name: 'status in a manifest is ignored', manifest: key({}, { status: { keyID: 'forged' } }), spec: { state: 'Active', models: ['*'] } },
  {
    name: 'labels and annotations of the ApiKey itself',
    manifest: key({}, { metadata: { name: KEY_NAME, labels: { 'a.b/c': 'd' }, annotations: { 'A.b/c': 'any text' } } }),
  },
]

const badKeys: readonly ManifestRow[] = [
  refused('no spec', 'spec', { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata: { name: KEY_NAME } }),
  refused('a spec that is null', 'spec', keyWithSpec(null)),
  refused('a spec that is a list', 'spec', keyWithSpec([])),
  refused('an unknown field', 'spec.model', key({ model: ['a'] })),
  refused('an unknown field that is null', 'spec.model', key({ model: null })),
  refused('an unknown field deep inside', 'spec.secret.template.label', secret({ label: { a: 'b' } })),
  refused('an unknown field beside spec', 'sepc', key({}, { sepc: {} })),
  refused('a field of a later version', 'spec.creditRef', key({ creditRef: { name: 'acme' } })),
  refused('a displayName of 64 characters', 'spec.displayName', key({ displayName: 'x'.repeat(64) })),
  refused('a state in lower case', 'spec.state', key({ state: 'active' })),
  refused('an empty spec: a key without models must not open all of them', 'spec.models', keyWithSpec({})),
  refused('a list of models whose entries are commented out', 'spec.models', key({ models: null })),
  refused('an empty list of models, which is neither all nor none', 'spec.models', key({ models: [] })),
  refused('257 models', 'spec.models', key({ models: names(257) })),
  refused('models of 8193 characters together', 'spec.models', key({ models: longNames(8193) }), 'spec.models#models-total'),
  refused(
    'as many and as long models as each bound alone allows',
    'spec.models',
    key({ models: names(256).map((name) => name.padEnd(253, 'x')) }),
    'spec.models#models-total',
  ),
  refused('an empty model', 'spec.models[0]', key({ models: [''] })),
  refused('a model that is null', 'spec.models[0]', key({ models: [null] })),
  refused('a star in the middle', 'spec.models[1]', key({ models: ['a', 'b*c'] })),
  refused('a star at both ends', 'spec.models[0]', key({ models: ['*b*'] })),
  refused('a model of 254 characters', 'spec.models[0]', key({ models: ['a'.repeat(254)] })),
  refused('models that are one string', 'spec.models', key({ models: 'a' })),
  refused('a day that does not exist', 'spec.expirationTime', key({ expirationTime: '2027-02-30T00:00:00Z' })),
  refused('an hour that does not exist', 'spec.expirationTime', key({ expirationTime: '2027-02-20T24:00:00Z' })),
  refused('a date without a time', 'spec.expirationTime', key({ expirationTime: '2027-01-01' })),
  refused('a time without a zone', 'spec.expirationTime', key({ expirationTime: '2027-01-01T00:00:00' })),
  refused('a time in lower case', 'spec.expirationTime', key({ expirationTime: '2027-01-01t00:00:00z' })),
  ...['9999-12-31T23:59:59-14:00', '9999-12-31T23:59:59-00:01', '0000-12-31T23:59:59Z', '0001-01-01T00:00:00+00:01'].map((expirationTime) =>
    refused(
      `the time ${expirationTime}, which is not a four-digit year in UTC`,
      'spec.expirationTime',
      key({ expirationTime }),
      'spec.expirationTime#four-digit-year',
    ),
  ),
  refused('a life of 59 seconds', 'spec.ttlSeconds', key({ ttlSeconds: 59 })),
  refused('a life of more than ten years', 'spec.ttlSeconds', key({ ttlSeconds: 315_360_001 })),
  refused('half a second', 'spec.ttlSeconds', key({ ttlSeconds: 60.5 })),
  refused('a number in quotes', 'spec.ttlSeconds', key({ ttlSeconds: '3600' })),
  refused('two ends', 'spec.ttlSeconds', key({ ttlSeconds: 3600, expirationTime: '2027-01-01T00:00:00Z' }), 'spec#one-end'),
  refused('a Secret name in upper case', 'spec.secret.name', key({ secret: { name: 'Bot' } })),
  refused('an empty Secret name', 'spec.secret.name', key({ secret: { name: '' } })),
  refused('ANTHROPIC_API_KEY as true', 'spec.secret.anthropicApiKey', key({ secret: { anthropicApiKey: true } })),
  refused('ANTHROPIC_API_KEY as another word', 'spec.secret.anthropicApiKey', key({ secret: { anthropicApiKey: 'Yes' } })),
  refused('a retention of a later version', 'spec.secret.retention', key({ secret: { retention: 'Claim' } })),
  refused('17 labels', 'spec.secret.template.labels', secret({ labels: entries(17) })),
  refused('17 annotations', 'spec.secret.template.annotations', secret({ annotations: entries(17) })),
  refused('a label value with a space', 'spec.secret.template.labels.team', secret({ labels: { team: 'my shop' } })),
  refused('a label value of 64 characters', 'spec.secret.template.labels.team', secret({ labels: { team: 'x'.repeat(64) } })),
  refused('an annotation of 2049 characters', 'spec.secret.template.annotations.why', secret({ annotations: { why: 'x'.repeat(2049) } })),
  ...['a b', '/a', 'a/', 'a/b/c', 'Shop/a', '-a', '', `${'a'.repeat(64)}`, `${'a.'.repeat(130)}a/b`].map((label) =>
    refused(
      `the label key ${JSON.stringify(label.slice(0, 12))} (${label.length})`,
      'spec.secret.template.labels',
      secret({ labels: { [label]: 'b' } }),
      'spec.secret.template.labels#label-keys',
    ),
  ),
  refused(
    'a malformed annotation key',
    'spec.secret.template.annotations',
    secret({ annotations: { 'a b': 'c' } }),
    'spec.secret.template.annotations#label-keys',
  ),
  refused(
    'a label that belongs to the operator',
    'spec.secret.template.labels',
    secret({ labels: { 'headgate.dev/owner': 'me' } }),
    'spec.secret.template.labels#own-keys',
  ),
  refused(
    'an annotation that belongs to the operator',
    'spec.secret.template.annotations',
    secret({ annotations: { 'headgate.dev/key-id': 'me' } }),
    'spec.secret.template.annotations#own-keys',
  ),
  refused('a malformed name', 'metadata.name', key({}, { metadata: { name: 'Checkout_Bot' } })),
  refused('a malformed label of the ApiKey itself', 'metadata.labels', key({}, { metadata: { name: KEY_NAME, labels: { a: 'b c' } } })),
  refused('an unknown field of metadata', 'metadata.lables', key({}, { metadata: { name: KEY_NAME, lables: {} } })),
]

const changedKeys: readonly ManifestRow[] = [
  { name: 'a key is suspended', manifest: key({ state: 'Suspended' }), previous: key({}) },
  { name: 'a suspended key is resumed', manifest: key({ state: 'Active' }), previous: key({ state: 'Suspended' }) },
  { name: 'a suspended key is resumed by removing its state', manifest: key({}), previous: key({ state: 'Suspended' }) },
  { name: 'a key is revoked', manifest: key({ state: 'Revoked' }), previous: key({}) },
  { name: 'a new key may be born revoked', manifest: key({ state: 'Revoked' }) },
  {
    name: 'a revoked key may be renamed for people',
    manifest: key({ state: 'Revoked', displayName: 'old' }),
    previous: key({ state: 'Revoked' }),
  },
  ...[{ state: 'Active' }, { state: 'Suspended' }, {}, { state: null }].map((spec) => ({
    name: `a revoked key cannot become ${JSON.stringify(spec)}`,
    manifest: key(spec),
    previous: key({ state: 'Revoked' }),
    refused: 'spec.state',
    rule: 'spec#revoked-is-final',
  })),
  {
    name: 'one kind of end replaces the other',
    manifest: key({ ttlSeconds: 3600 }),
    previous: key({ expirationTime: '2027-01-01T00:00:00Z' }),
  },
  { name: 'the end is removed', manifest: key({}), previous: key({ ttlSeconds: 3600 }) },
  { name: 'a Secret name that says what was the default', manifest: key({ secret: { name: KEY_NAME } }), previous: key({}) },
  { name: 'a Secret name that said the default is removed', manifest: key({}), previous: key({ secret: { name: KEY_NAME } }) },
  {
    name: 'the rest of secret may change',
    manifest: key({ secret: { name: 'a', template: { labels: { b: 'c' } } } }),
    previous: key({ secret: { name: 'a' } }),
  },
  ...[
    { from: { secret: { name: 'a' } }, to: { secret: { name: 'b' } } },
    { from: { secret: { name: 'a' } }, to: { secret: {} } },
    { from: { secret: { name: 'a' } }, to: {} },
    { from: {}, to: { secret: { name: 'b' } } },
    { from: { secret: {} }, to: { secret: { name: 'b' } } },
  ].map(({ from, to }) => ({
    name: `the Secret cannot move from ${JSON.stringify(from)} to ${JSON.stringify(to)}`,
    manifest: key(to),
    previous: key(from),
    refused: 'spec.secret.name',
    rule: '#secret-name-immutable',
  })),
]

export const API_KEY_MANIFESTS: readonly ManifestRow[] = [...goodKeys, ...badKeys, ...changedKeys, ...LIMIT_MANIFESTS, ...SOURCE_MANIFESTS]
