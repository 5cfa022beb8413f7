/** Rows of the table in `manifests.ts` about `source` and `rotation` of an ApiKey. */
import { key, type Manifest, type ManifestRow, refused, type Spec } from './manifest-row.ts'

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
  ...[SHA256.toUpperCase(), SHA256.slice(1), `${SHA256}0`, `sha512:${SHA256}`, 'sk-1234567890abcdefghij', ''].map((sha256) =>
    refused(`an invalid hash: ${sha256.slice(0, 12)}… of ${sha256.length} characters`, 'spec.source.hash.sha256', hash({ sha256 })),
  ),
  refused('a source without its hash', 'spec.source.hash.sha256', key({ source: { type: 'Hash', hash: {} } })),
  refused('a hint of 17 characters', 'spec.source.hash.hint', hash({ hint: 'x'.repeat(17) })),
  refused('a hint with a line break', 'spec.source.hash.hint', hash({ hint: 'a\nb' })),
  refused('a type of a later version', 'spec.source.type', key({ source: { type: 'SecretRef' } })),
  refused('the value itself instead of its hash', 'spec.source.value', key({ source: { type: 'Hash', value: 'x' } })),
  refused('an overlap of more than 30 days', 'spec.rotation.overlapSeconds', hash({}, { rotation: { overlapSeconds: 2_592_001 } })),
  refused('a negative overlap', 'spec.rotation.overlapSeconds', hash({}, { rotation: { overlapSeconds: -1 } })),
  refused('a rotation by a number, of a later version', 'spec.rotation.revision', hash({}, { rotation: { revision: 2 } })),
  refused('type Hash without a hash', 'spec.source.hash', key({ source: { type: 'Hash' } }), 'spec.source#hash-of-type-hash'),
  refused(
    'a hash without type Hash',
    'spec.source.hash',
    key({ source: { hash: { sha256: SHA256 } } }),
    'spec.source#no-hash-of-type-generated',
  ),
  refused('a Secret for a value that exists elsewhere', 'spec.secret', hash({}, { secret: {} }), 'spec#secret-of-generated'),
  refused('an overlap that nothing enforces', 'spec.rotation', key({ rotation: { overlapSeconds: 60 } }), 'spec#rotation-of-hash'),
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
