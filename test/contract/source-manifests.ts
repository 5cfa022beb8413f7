/** Rows of the table in `manifests.ts` about `source` and `rotation` of an ApiKey. */
import type { Manifest, ManifestRow, Spec } from './manifest-row.ts'

function key(spec: Spec): Manifest {
  return { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata: { name: 'checkout-bot' }, spec: { models: ['*'], ...spec } }
}

const SHA256 = '9e03956637604ea1559a91c78a8254cd9c0622325bce08c26dd65a53c4b30393'
const hash = (change: Spec = {}, more: Spec = {}): Manifest =>
  key({ source: { type: 'Hash', hash: { sha256: SHA256, ...change } }, ...more })
const otherHash = 'a'.repeat(64)

const goodSources: readonly ManifestRow[] = [
  {
    name: 'a key whose value exists already',
    manifest: hash({ hint: 'sk-...AbCd' }),
    spec: { state: 'Active', models: ['*'], source: { type: 'Hash', hash: { sha256: SHA256, hint: 'sk-...AbCd' } } },
  },
  { name: 'a hash as other tools write it', manifest: hash({ sha256: `sha256:${SHA256}` }) },
  {
    name: 'the overlap of a rotation has a default',
    manifest: hash({}, { rotation: {} }),
    spec: {
      state: 'Active',
      models: ['*'],
      source: { type: 'Hash', hash: { sha256: SHA256 } },
      rotation: { overlapSeconds: 86_400 },
    },
  },
  {
    name: 'the shortest and the longest overlap',
    manifest: hash({}, { rotation: { overlapSeconds: 0 } }),
    previous: hash({}, { rotation: { overlapSeconds: 2_592_000 } }),
  },
  { name: 'another hash: a rotation', manifest: hash({ sha256: otherHash }), previous: hash() },
  { name: 'a source that says what is the default', manifest: key({ source: { type: 'Generated' } }), previous: key({}) },
  {
    name: 'the type of a source has a default',
    manifest: key({ source: {} }),
    spec: { state: 'Active', models: ['*'], source: { type: 'Generated' } },
  },
  { name: 'a hint of 16 characters, counted as characters', manifest: hash({ hint: '🔑'.repeat(16) }) },
]

const badSources: readonly ManifestRow[] = [
  ...[SHA256.toUpperCase(), SHA256.slice(1), `${SHA256}0`, `sha512:${SHA256}`, 'sk-1234567890abcdefghij', ''].map((sha256) => ({
    name: `an invalid hash: ${sha256.slice(0, 12)}… of ${sha256.length} characters`,
    manifest: hash({ sha256 }),
    refused: 'spec.source.hash.sha256',
  })),
  { name: 'a source without its hash', manifest: key({ source: { type: 'Hash', hash: {} } }), refused: 'spec.source.hash.sha256' },
  { name: 'a hint of 17 characters', manifest: hash({ hint: 'x'.repeat(17) }), refused: 'spec.source.hash.hint' },
  { name: 'a hint with a line break', manifest: hash({ hint: 'a\nb' }), refused: 'spec.source.hash.hint' },
  { name: 'a type of a later version', manifest: key({ source: { type: 'SecretRef' } }), refused: 'spec.source.type' },
  { name: 'the value itself instead of its hash', manifest: key({ source: { type: 'Hash', value: 'x' } }), refused: 'spec.source.value' },
  {
    name: 'an overlap of more than 30 days',
    manifest: hash({}, { rotation: { overlapSeconds: 2_592_001 } }),
    refused: 'spec.rotation.overlapSeconds',
  },
  { name: 'a negative overlap', manifest: hash({}, { rotation: { overlapSeconds: -1 } }), refused: 'spec.rotation.overlapSeconds' },
  {
    name: 'a rotation by a number, of a later version',
    manifest: hash({}, { rotation: { revision: 2 } }),
    refused: 'spec.rotation.revision',
  },
  {
    name: 'type Hash without a hash',
    manifest: key({ source: { type: 'Hash' } }),
    refused: 'spec.source.hash',
    rule: 'spec.source#hash-of-type-hash',
  },
  {
    name: 'a hash without type Hash',
    manifest: key({ source: { hash: { sha256: SHA256 } } }),
    refused: 'spec.source.hash',
    rule: 'spec.source#no-hash-of-type-generated',
  },
  {
    name: 'a Secret for a value that exists elsewhere',
    manifest: hash({}, { secret: {} }),
    refused: 'spec.secret',
    rule: 'spec#secret-of-generated',
  },
  {
    name: 'an overlap that nothing enforces',
    manifest: key({ rotation: { overlapSeconds: 60 } }),
    refused: 'spec.rotation',
    rule: 'spec#rotation-of-hash',
  },
  {
    name: 'a generated key that becomes a hash',
    manifest: hash(),
    previous: key({}),
    refused: 'spec.source.type',
    rule: 'spec#source-type-immutable',
  },
  {
    name: 'a hash that becomes a generated key by leaving source out',
    manifest: key({}),
    previous: hash(),
    refused: 'spec.source.type',
    rule: 'spec#source-type-immutable',
  },
]

export const SOURCE_MANIFESTS: readonly ManifestRow[] = [...goodSources, ...badSources]
