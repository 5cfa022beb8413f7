import { expect, test } from 'vitest'
import { hashSpec } from '../../../test/support/hash-keys.ts'
import { edited, heldKey, issued } from '../../../test/support/observed-key.ts'
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import type { Level } from '../../loop/level.ts'
import { urgencyOf } from './keyring-entry.ts'

const key = heldKey({ models: ['a', 'b'] })
const edit = (spec: Partial<ApiKey['spec']>, of = key): ApiKey => edited(issued(of), spec).apiKey
const touch = (metadata: Partial<ApiKey['metadata']>, of = key): ApiKey => ({ ...of, metadata: { ...of.metadata, ...metadata } })
const deleted = touch({ deletionTimestamp: '2026-01-02T00:00:00Z' })

test.each<[string, ApiKey | undefined, ApiKey, Level | undefined]>([
  ['a new key waits for existing keys', undefined, touch({ finalizers: [] }), 'create'],
  ['a key that existed before this process counts as existing', undefined, key, 'change'],
  ['a suspended key that appears is urgent: the cache may have missed the edit', undefined, heldKey({ state: 'Suspended' }), 'urgent'],
  ['a revoked key that appears is urgent', undefined, heldKey({ state: 'Revoked' }), 'urgent'],
  ['a key that appears while it is deleted is urgent', undefined, deleted, 'urgent'],
  ['another object of the same name counts as new', heldKey({}, { uid: 'uid-0' }), touch({ finalizers: [] }), 'create'],
  ['another object of the same name that is suspended is urgent', heldKey({}, { uid: 'uid-0' }), heldKey({ state: 'Suspended' }), 'urgent'],
  ['a deletion is urgent', key, deleted, 'urgent'],
  ['a suspension is urgent', key, edit({ state: 'Suspended' }), 'urgent'],
  ['a revocation is urgent', key, edit({ state: 'Revoked' }), 'urgent'],
  ['a removed model is urgent', key, edit({ models: ['a'] }), 'urgent'],
  ['an earlier end is urgent', key, edit({ ttlSeconds: 60 }), 'urgent'],
  [
    'another hash without an overlap is urgent',
    heldKey(hashSpec('sk-a', 0)),
    edit(hashSpec('sk-b'), heldKey(hashSpec('sk-a', 0))),
    'urgent',
  ],
  ['a shorter overlap is urgent', heldKey(hashSpec('sk-a', 60)), edit(hashSpec('sk-a', 5), heldKey(hashSpec('sk-a', 60))), 'urgent'],
  ['another hash with an overlap is a change', heldKey(hashSpec('sk-a')), edit(hashSpec('sk-b'), heldKey(hashSpec('sk-a'))), 'change'],
  ['a resumption is a change', edit({ state: 'Suspended' }), edit({ state: 'Active' }, edit({ state: 'Suspended' })), 'change'],
  ['an added model is a change', key, edit({ models: ['a', 'b', 'c'] }), 'change'],
  [
    'an edit of a key without the finalizer waits for existing keys',
    touch({ finalizers: [] }),
    edit({ displayName: 'x' }, touch({ finalizers: [] })),
    'create',
  ],
  ['a removed finalizer is added again', key, touch({ finalizers: ['somebody/else'] }), 'create'],
  ['a changed annotation causes a run', key, touch({ annotations: { note: 'x' } }), 'change'],
  ['the finalizer of the operator needs no run', touch({ finalizers: [] }), touch({ finalizers: [FINALIZER] }), undefined],
  ['a status of the operator needs no run', key, { ...key, status: { keyID: 'x' } }, undefined],
  ['a mere new resource version needs no run', key, touch({ resourceVersion: '2' }), undefined],
])('%s', (_what, before, after, level) => {
  expect(urgencyOf(before, after)).toBe(level)
})
