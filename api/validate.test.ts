import { expect, test } from 'vitest'
import { validateManifest } from './validate.ts'

const apiVersion = 'headgate.dev/v1alpha1'

test('a document that is not an object, or of a kind that is not ours, is refused as such', () => {
  expect(validateManifest('text')).toEqual({ ok: false, errors: [expect.objectContaining({ reason: 'is text, not an object' })] })
  expect(validateManifest({ apiVersion, kind: 'Secret' })).toEqual({
    ok: false,
    errors: [{ field: 'kind', reason: '"Secret" is not a known value', remedy: 'use ApiKey, ServedModel, Plan, Account or Credit' }],
  })
  expect(validateManifest({ apiVersion: 'headgate.dev/v1', kind: 'ApiKey' })).toMatchObject({ errors: [{ field: 'apiVersion' }] })
})

test('a manifest without a name is refused, one without a namespace is in default', () => {
  expect(validateManifest({ apiVersion, kind: 'ApiKey', metadata: {}, spec: { models: ['*'] } })).toEqual({
    ok: false,
    errors: [{ field: 'metadata.name', reason: 'is missing', remedy: 'add it' }],
  })
  const named = validateManifest({ apiVersion, kind: 'ApiKey', metadata: { name: 'a' }, spec: { models: ['*'] } })
  expect(named).toEqual({
    ok: true,
    object: { apiVersion, kind: 'ApiKey', metadata: { name: 'a', namespace: 'default' }, spec: { state: 'Active', models: ['*'] } },
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
    spec: { state: 'Active', models: ['*'] },
    status: { keyID: 'forged' },
  }
  expect(validateManifest(exported)).toEqual({
    ok: true,
    object: {
      apiVersion,
      kind: 'ApiKey',
      metadata: { name: 'a', namespace: 'b', labels: { d: 'e' } },
      spec: { state: 'Active', models: ['*'] },
    },
  })
})

test('a validation reports all errors of a manifest at once, each with its path, its reason and its remedy', () => {
  const errors = validateManifest({
    apiVersion,
    kind: 'ServedModel',
    metadata: { name: 'llama' },
    spec: { aliases: ['a', 'a'], backends: [{ name: 'A', service: { name: 'llama', port: 70_000 }, wieght: 1 }] },
  })
  expect(errors).toEqual({
    ok: false,
    errors: [
      { field: 'spec.backends[0].wieght', reason: 'there is no such field', remedy: 'did you mean weight?' },
      { field: 'spec.aliases[1]', reason: 'repeats "a"', remedy: 'remove one of the two' },
      {
        field: 'spec.backends[0].name',
        reason: '"A" is not a valid name',
        remedy: 'use lower-case letters, digits and "-", with a letter or a digit at both ends, for example "a"',
      },
      { field: 'spec.backends[0].service.port', reason: '70000 is too large', remedy: 'use at most 65535' },
    ],
  })
})

test('a change is compared with an object of the same kind only', () => {
  const model = validateManifest({
    apiVersion,
    kind: 'ServedModel',
    metadata: { name: 'a' },
    spec: { backends: [{ name: 'a', url: 'http://a.b' }] },
  })
  if (!model.ok) throw new Error('the model should be valid')
  expect(validateManifest({ apiVersion, kind: 'ApiKey', metadata: { name: 'b' }, spec: { models: ['*'] } }, model.object)).toMatchObject({
    ok: true,
  })
})
