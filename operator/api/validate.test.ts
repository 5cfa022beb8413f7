import { expect, test } from 'vitest'
import { validateManifest } from './validate.ts'

const apiVersion = 'headgate.dev/v1alpha1'

test('a document that is no object, or of a kind that is not ours, is named as such', () => {
  expect(validateManifest('text')).toEqual({ ok: false, faults: [expect.objectContaining({ reason: 'it must be of type object' })] })
  expect(validateManifest({ apiVersion, kind: 'Secret' })).toEqual({
    ok: false,
    faults: [{ field: 'kind', reason: 'it has a value that is not known', cure: 'use ApiKey, ServedModel' }],
  })
  expect(validateManifest({ apiVersion: 'headgate.dev/v1', kind: 'ApiKey' })).toMatchObject({ faults: [{ field: 'apiVersion' }] })
})

test('a manifest without a name is refused, one without a namespace is in default', () => {
  expect(validateManifest({ apiVersion, kind: 'ApiKey', metadata: {}, spec: {} })).toEqual({
    ok: false,
    faults: [{ field: 'metadata.name', reason: 'it is missing', cure: 'add it' }],
  })
  const named = validateManifest({ apiVersion, kind: 'ApiKey', metadata: { name: 'a' }, spec: {} })
  expect(named).toEqual({
    ok: true,
    object: { apiVersion, kind: 'ApiKey', metadata: { name: 'a', namespace: 'default' }, spec: { state: 'Active' } },
  })
})

test('what a server wrote into an object is dropped, so that an exported object is a manifest too', () => {
  const exported = {
    apiVersion,
    kind: 'ApiKey',
    metadata: {
      name: 'a',
      namespace: 'b',
      uid: 'c',
      resourceVersion: '1',
      managedFields: [],
      finalizers: ['headgate.dev/revoke'],
      labels: { d: 'e' },
    },
    spec: { state: 'Active' },
    status: { keyID: 'forged' },
  }
  expect(validateManifest(exported)).toEqual({
    ok: true,
    object: { apiVersion, kind: 'ApiKey', metadata: { name: 'a', namespace: 'b', labels: { d: 'e' } }, spec: { state: 'Active' } },
  })
})

test('all faults of a manifest are told at once, each with its path, its reason and its cure', () => {
  const faults = validateManifest({
    apiVersion,
    kind: 'ServedModel',
    metadata: { name: 'llama' },
    spec: { aliases: ['a', 'a'], backends: [{ name: 'A', service: { name: 'llama', port: 70_000 }, wieght: 1 }] },
  })
  expect(faults).toEqual({
    ok: false,
    faults: [
      { field: 'spec.backends[0].wieght', reason: 'there is no such field', cure: 'remove it, or check its spelling and where it stands' },
      { field: 'spec.aliases[1]', reason: 'it repeats "a"', cure: 'correct it' },
      {
        field: 'spec.backends[0].name',
        reason: 'it has characters, or a shape, that it must not have',
        cure: expect.stringContaining('match '),
      },
      { field: 'spec.backends[0].service.port', reason: 'it is too large', cure: 'use at most 65535' },
    ],
  })
})

test('a change is judged against an object of the same kind only', () => {
  const model = validateManifest({
    apiVersion,
    kind: 'ServedModel',
    metadata: { name: 'a' },
    spec: { backends: [{ name: 'a', url: 'http://a.b' }] },
  })
  if (!model.ok) throw new Error('the model should be valid')
  expect(validateManifest({ apiVersion, kind: 'ApiKey', metadata: { name: 'b' }, spec: {} }, model.object)).toMatchObject({ ok: true })
})
