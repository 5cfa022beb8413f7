/** ApiKey rows of the table in `manifests.ts`. */
import { LIMIT_MANIFESTS } from './limit-manifests.ts'
import { type Manifest, type ManifestRow, names, type Spec } from './manifest-row.ts'
import { SOURCE_MANIFESTS } from './source-manifests.ts'

const NAME = 'checkout-bot'

function key(spec: Spec, more: Partial<Manifest> = {}): Manifest {
  return withSpec({ models: ['*'], ...spec }, more)
}

function withSpec(spec: unknown, more: Partial<Manifest> = {}): Manifest {
  return { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata: { name: NAME }, spec, ...more }
}

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
    manifest: key({}, { metadata: { name: NAME, labels: { 'a.b/c': 'd' }, annotations: { 'A.b/c': 'any text' } } }),
  },
]

const badKeys: readonly ManifestRow[] = [
  { name: 'no spec', manifest: { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata: { name: NAME } }, refused: 'spec' },
  { name: 'a spec that is null', manifest: withSpec(null), refused: 'spec' },
  { name: 'a spec that is a list', manifest: withSpec([]), refused: 'spec' },
  { name: 'an unknown field', manifest: key({ model: ['a'] }), refused: 'spec.model' },
  { name: 'an unknown field that is null', manifest: key({ model: null }), refused: 'spec.model' },
  { name: 'an unknown field deep inside', manifest: secret({ label: { a: 'b' } }), refused: 'spec.secret.template.label' },
  { name: 'an unknown field beside spec', manifest: key({}, { sepc: {} }), refused: 'sepc' },
  { name: 'a field of a later version', manifest: key({ accountRef: { name: 'acme' } }), refused: 'spec.accountRef' },
  { name: 'a displayName of 64 characters', manifest: key({ displayName: 'x'.repeat(64) }), refused: 'spec.displayName' },
  { name: 'a state in lower case', manifest: key({ state: 'active' }), refused: 'spec.state' },
  { name: 'an empty spec: a key without models must not open all of them', manifest: withSpec({}), refused: 'spec.models' },
  { name: 'a list of models whose entries are commented out', manifest: key({ models: null }), refused: 'spec.models' },
  { name: 'an empty list of models, which is neither all nor none', manifest: key({ models: [] }), refused: 'spec.models' },
  { name: '257 models', manifest: key({ models: names(257) }), refused: 'spec.models' },
  {
    name: 'models of 8193 characters together',
    manifest: key({ models: longNames(8193) }),
    refused: 'spec.models',
    rule: 'spec.models#models-total',
  },
  {
    name: 'as many and as long models as each bound alone allows',
    manifest: key({ models: names(256).map((name) => name.padEnd(253, 'x')) }),
    refused: 'spec.models',
    rule: 'spec.models#models-total',
  },
  { name: 'an empty model', manifest: key({ models: [''] }), refused: 'spec.models[0]' },
  { name: 'a model that is null', manifest: key({ models: [null] }), refused: 'spec.models[0]' },
  { name: 'a star in the middle', manifest: key({ models: ['a', 'b*c'] }), refused: 'spec.models[1]' },
  { name: 'a star at both ends', manifest: key({ models: ['*b*'] }), refused: 'spec.models[0]' },
  { name: 'a model of 254 characters', manifest: key({ models: ['a'.repeat(254)] }), refused: 'spec.models[0]' },
  { name: 'models that are one string', manifest: key({ models: 'a' }), refused: 'spec.models' },
  { name: 'a day that does not exist', manifest: key({ expirationTime: '2027-02-30T00:00:00Z' }), refused: 'spec.expirationTime' },
  { name: 'an hour that does not exist', manifest: key({ expirationTime: '2027-02-20T24:00:00Z' }), refused: 'spec.expirationTime' },
  { name: 'a date without a time', manifest: key({ expirationTime: '2027-01-01' }), refused: 'spec.expirationTime' },
  { name: 'a time without a zone', manifest: key({ expirationTime: '2027-01-01T00:00:00' }), refused: 'spec.expirationTime' },
  { name: 'a time in lower case', manifest: key({ expirationTime: '2027-01-01t00:00:00z' }), refused: 'spec.expirationTime' },
  ...['9999-12-31T23:59:59-14:00', '9999-12-31T23:59:59-00:01', '0000-12-31T23:59:59Z', '0001-01-01T00:00:00+00:01'].map(
    (expirationTime) => ({
      name: `the time ${expirationTime}, which is no four-digit year in UTC`,
      manifest: key({ expirationTime }),
      refused: 'spec.expirationTime',
      rule: 'spec.expirationTime#four-digit-year',
    }),
  ),
  { name: 'a life of 59 seconds', manifest: key({ ttlSeconds: 59 }), refused: 'spec.ttlSeconds' },
  { name: 'a life of more than ten years', manifest: key({ ttlSeconds: 315_360_001 }), refused: 'spec.ttlSeconds' },
  { name: 'half a second', manifest: key({ ttlSeconds: 60.5 }), refused: 'spec.ttlSeconds' },
  { name: 'a number in quotes', manifest: key({ ttlSeconds: '3600' }), refused: 'spec.ttlSeconds' },
  {
    name: 'two ends',
    manifest: key({ ttlSeconds: 3600, expirationTime: '2027-01-01T00:00:00Z' }),
    refused: 'spec.ttlSeconds',
    rule: 'spec#one-end',
  },
  { name: 'a Secret name in upper case', manifest: key({ secret: { name: 'Bot' } }), refused: 'spec.secret.name' },
  { name: 'an empty Secret name', manifest: key({ secret: { name: '' } }), refused: 'spec.secret.name' },
  { name: 'ANTHROPIC_API_KEY as true', manifest: key({ secret: { anthropicApiKey: true } }), refused: 'spec.secret.anthropicApiKey' },
  {
    name: 'ANTHROPIC_API_KEY as another word',
    manifest: key({ secret: { anthropicApiKey: 'Yes' } }),
    refused: 'spec.secret.anthropicApiKey',
  },
  { name: 'a retention of a later version', manifest: key({ secret: { retention: 'Claim' } }), refused: 'spec.secret.retention' },
  { name: '17 labels', manifest: secret({ labels: entries(17) }), refused: 'spec.secret.template.labels' },
  { name: '17 annotations', manifest: secret({ annotations: entries(17) }), refused: 'spec.secret.template.annotations' },
  { name: 'a label value with a space', manifest: secret({ labels: { team: 'my shop' } }), refused: 'spec.secret.template.labels.team' },
  {
    name: 'a label value of 64 characters',
    manifest: secret({ labels: { team: 'x'.repeat(64) } }),
    refused: 'spec.secret.template.labels.team',
  },
  {
    name: 'an annotation of 2049 characters',
    manifest: secret({ annotations: { why: 'x'.repeat(2049) } }),
    refused: 'spec.secret.template.annotations.why',
  },
  ...['a b', '/a', 'a/', 'a/b/c', 'Shop/a', '-a', '', `${'a'.repeat(64)}`, `${'a.'.repeat(130)}a/b`].map((label) => ({
    name: `the label key ${JSON.stringify(label.slice(0, 12))} (${label.length})`,
    manifest: secret({ labels: { [label]: 'b' } }),
    refused: 'spec.secret.template.labels',
    rule: 'spec.secret.template.labels#label-keys',
  })),
  {
    name: 'a malformed annotation key',
    manifest: secret({ annotations: { 'a b': 'c' } }),
    refused: 'spec.secret.template.annotations',
    rule: 'spec.secret.template.annotations#label-keys',
  },
  {
    name: 'a label that belongs to the operator',
    manifest: secret({ labels: { 'headgate.dev/owner': 'me' } }),
    refused: 'spec.secret.template.labels',
    rule: 'spec.secret.template.labels#own-keys',
  },
  {
    name: 'an annotation that belongs to the operator',
    manifest: secret({ annotations: { 'headgate.dev/key-id': 'me' } }),
    refused: 'spec.secret.template.annotations',
    rule: 'spec.secret.template.annotations#own-keys',
  },
  { name: 'a malformed name', manifest: key({}, { metadata: { name: 'Checkout_Bot' } }), refused: 'metadata.name' },
  {
    name: 'a malformed label of the ApiKey itself',
    manifest: key({}, { metadata: { name: NAME, labels: { a: 'b c' } } }),
    refused: 'metadata.labels',
  },
  { name: 'an unknown field of metadata', manifest: key({}, { metadata: { name: NAME, lables: {} } }), refused: 'metadata.lables' },
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
  { name: 'a Secret name that says what was the default', manifest: key({ secret: { name: NAME } }), previous: key({}) },
  { name: 'a Secret name that said the default is removed', manifest: key({}), previous: key({ secret: { name: NAME } }) },
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
