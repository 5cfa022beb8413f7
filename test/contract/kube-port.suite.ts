/** The promises of every KubePort to reconcile code. The suite runs on the store of `make run` and on a real API server. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { ApiKey } from '#api/apikey.ts'
import { isKubeError, refOf, type KubeErrorCode, type KubePort } from '#kube/port.ts'
import { apiKeys } from '#api/resources.ts'
import { secrets, type Secret } from '#kube/resources.ts'

export interface KubePortSubject {
  readonly port: KubePort
  readonly namespace: string
}

const FINALIZER = 'headgate.dev/revoke'
const PATIENCE_MS = 90_000 // a real garbage collector discovers new kinds every 30 s

export function describeKubePort(name: string, makeSubject: () => Promise<KubePortSubject>): void {
  describe(`${name} behaves as Kubernetes does:`, () => {
    let port: KubePort
    let namespace = ''

    beforeEach(async () => {
      ;({ port, namespace } = await makeSubject())
    })

    const key = (metadata: Partial<ApiKey['metadata']> = {}): ApiKey => ({
      apiVersion: 'headgate.dev/v1alpha1',
      kind: 'ApiKey',
      metadata: { name: 'bot', namespace, ...metadata },
      spec: { state: 'Active', models: ['a'] },
    })
    const secret = (metadata: Partial<Secret['metadata']> = {}): Secret => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'bot', namespace, ...metadata },
      type: 'Opaque',
      data: { token: Buffer.from('one').toString('base64') },
    })
    const ref = (object = 'bot'): { namespace: string; name: string } => ({ namespace, name: object })
    const present = async (): Promise<ApiKey> => {
      const found = await port.get(apiKeys, ref())
      if (found === undefined) throw new Error('the ApiKey is absent')
      return found
    }

    it('a created object gets a uid and a version, and is read back unchanged; an absent object is read as undefined', async () => {
      const created = await port.create(apiKeys, key({ labels: { a: 'b' } }))
      expect(created.metadata).toMatchObject({ name: 'bot', namespace, generation: 1, labels: { a: 'b' } })
      expect(created.metadata.uid).toMatch(/^[0-9a-f-]{36}$/)
      expect(created.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      expect(await port.get(apiKeys, ref())).toMatchObject({ metadata: { uid: created.metadata.uid }, spec: { models: ['a'] } })
      expect(await port.get(apiKeys, ref('other'))).toBeUndefined()
    })

    it('a list holds the objects of its namespace', async () => {
      await port.create(secrets, secret({ name: 'listed-a' }))
      await port.create(secrets, secret({ name: 'listed-b' }))
      expect((await port.list(secrets, namespace)).map((object) => refOf(object).name)).toEqual(
        expect.arrayContaining(['listed-a', 'listed-b']),
      )
      expect(await port.list(secrets, 'no-such-namespace')).toEqual([])
    })

    it('a list by label holds only the objects with that label', async () => {
      await port.create(secrets, secret({ name: 'labelled-a', labels: { set: 'one', other: 'x' } }))
      await port.create(secrets, secret({ name: 'labelled-b', labels: { set: 'two' } }))
      await port.create(secrets, secret({ name: 'unlabelled' }))
      expect((await port.list(secrets, namespace, 'set=one')).map((object) => refOf(object).name)).toEqual(['labelled-a'])
    })

    it('a second create of the same name is AlreadyExists and changes nothing', async () => {
      const first = await port.create(secrets, secret())
      await refuses(port.create(secrets, { ...secret(), data: {} }), 'AlreadyExists')
      expect(await port.get(secrets, ref())).toMatchObject({ metadata: { uid: first.metadata.uid }, data: first.data })
    })

    it('an update with an old version is a Conflict, and an update of an absent object is NotFound', async () => {
      const first = await port.create(secrets, secret())
      const second = await port.update(secrets, { ...first, data: { token: 'dHdv' } })
      expect(second.metadata.uid).toBe(first.metadata.uid)
      expect(second.metadata.resourceVersion).not.toBe(first.metadata.resourceVersion)
      await refuses(port.update(secrets, { ...first, data: { token: 'dGhyZWU=' } }), 'Conflict')
      expect((await port.get(secrets, ref()))?.data).toEqual({ token: 'dHdv' })
      await refuses(port.update(secrets, { ...first, metadata: { ...first.metadata, name: 'ghost' } }), 'NotFound', 'Conflict', 'Invalid')
    })

    it('the generation counts changes of the spec, not of metadata or status, and a client cannot set status with the object', async () => {
      await port.create(apiKeys, { ...key(), status: { keyID: 'sneaked' } })
      expect((await present()).status).toBeUndefined()
      await port.patch(apiKeys, ref(), [{ op: 'add', path: '/metadata/labels', value: { team: 'x' } }])
      await port.applyStatus(apiKeys, { ...key(), status: { keyID: 'real' } })
      expect((await present()).metadata.generation).toBe(1)
      const patched = await port.patch(apiKeys, ref(), [{ op: 'replace', path: '/spec/models', value: ['b'] }])
      expect(patched.metadata.generation).toBe(2)
      expect(patched.status).toEqual({ keyID: 'real' })
    })

    it('a JSON-Patch is all or nothing: a failed test refuses it and changes nothing', async () => {
      const { metadata } = await port.create(apiKeys, key())
      const finalizer = { op: 'add', path: '/metadata/finalizers', value: [FINALIZER] } as const
      await refuses(
        port.patch(apiKeys, ref(), [finalizer, { op: 'test', path: '/metadata/resourceVersion', value: '999999999' }]),
        'Conflict',
        'Invalid',
      )
      expect((await present()).metadata.finalizers).toBeUndefined()
      const patched = await port.patch(apiKeys, ref(), [
        { op: 'test', path: '/metadata/resourceVersion', value: metadata.resourceVersion },
        finalizer,
      ])
      expect(patched.metadata.finalizers).toEqual([FINALIZER])
      await refuses(port.patch(apiKeys, ref(), [{ op: 'remove', path: '/metadata/annotations/absent~1key' }]), 'Conflict', 'Invalid')
      await refuses(port.patch(apiKeys, ref('ghost'), [finalizer]), 'NotFound')
    })

    it('a write that changes nothing keeps the version', async () => {
      const created = await port.create(apiKeys, key())
      const same = await port.patch(apiKeys, ref(), [{ op: 'replace', path: '/spec/models', value: ['a'] }])
      expect(same.metadata.resourceVersion).toBe(created.metadata.resourceVersion)
      const first = await port.applyStatus(apiKeys, { ...key(), status: { keyID: 'x', prefix: 'p' } })
      expect(first.metadata.resourceVersion).not.toBe(created.metadata.resourceVersion)
      const second = await port.applyStatus(apiKeys, { ...key(), status: { keyID: 'x', prefix: 'p' } })
      expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion)
    })

    it('an applied status replaces the whole status and nothing else', async () => {
      await port.create(apiKeys, key())
      await port.applyStatus(apiKeys, { ...key(), status: { keyID: 'x', prefix: 'p' } })
      await port.applyStatus(apiKeys, { ...key(), spec: { state: 'Suspended', models: ['a'] }, status: { keyID: 'y' } })
      const after = await present()
      expect(after.status).toEqual({ keyID: 'y' })
      expect(after.spec).toMatchObject({ state: 'Active', models: ['a'] })
      await refuses(port.applyStatus(apiKeys, { ...key({ name: 'ghost' }), status: {} }), 'NotFound')
    })

    it('a deletion waits for the finalizers of the object, admits no new ones, and ends when the last one is removed', async () => {
      await port.create(apiKeys, key({ finalizers: [FINALIZER] }))
      expect(await port.remove(apiKeys, ref())).toBe('deleted')
      const marked = await present()
      expect(marked.metadata.deletionTimestamp).toMatch(/Z$/)
      expect(await port.remove(apiKeys, ref())).toBe('deleted')
      expect((await present()).metadata.deletionTimestamp).toBe(marked.metadata.deletionTimestamp)
      await refuses(
        port.patch(apiKeys, ref(), [{ op: 'add', path: '/metadata/finalizers/-', value: 'headgate.dev/other' }]),
        'Invalid',
        'Forbidden',
      )
      await refuses(port.create(apiKeys, key()), 'AlreadyExists', 'Conflict')
      await port.patch(apiKeys, ref(), [{ op: 'remove', path: '/metadata/finalizers' }])
      expect(await port.get(apiKeys, ref())).toBeUndefined()
    })

    it('a delete with a uid or a version removes only that object, and the deletion of an absent object succeeds', async () => {
      const created = await port.create(secrets, secret())
      await refuses(port.remove(secrets, ref(), { uid: '00000000-0000-4000-8000-000000000000' }), 'Conflict')
      await refuses(port.remove(secrets, ref(), { resourceVersion: '999999999' }), 'Conflict')
      const { uid = '', resourceVersion = '' } = created.metadata
      expect(await port.remove(secrets, ref(), { uid, resourceVersion })).toBe('deleted')
      expect(await port.remove(secrets, ref(), { uid })).toBe('absent')
      const again = await port.create(secrets, secret())
      expect(again.metadata.uid).not.toBe(uid)
    })

    it('a replacement with an old version is a Conflict, and a successful one returns the new version', async () => {
      const first = await port.create(secrets, secret())
      const { metadata } = await port.update(secrets, { ...first, data: { token: 'dHdv' } })
      expect(await port.get(secrets, ref())).toMatchObject({
        metadata: { uid: metadata.uid, resourceVersion: metadata.resourceVersion },
        data: { token: 'dHdv' },
      })
      await refuses(port.update(secrets, first), 'Conflict')
    })

    it('a guarded update of a deleted and recreated object is a Conflict', async () => {
      const first = await port.create(secrets, secret())
      await port.remove(secrets, ref())
      await port.create(secrets, secret())
      await refuses(port.update(secrets, first), 'Conflict')
    })

    it('garbage collection removes the children of a removed owner', { timeout: PATIENCE_MS + 5_000 }, async () => {
      const owner = await port.create(apiKeys, key())
      const reference = { apiVersion: owner.apiVersion, kind: 'ApiKey', name: 'bot', uid: owner.metadata.uid ?? '', controller: true }
      await port.create(secrets, secret({ ownerReferences: [reference] }))
      await port.create(secrets, secret({ name: 'not-owned' }))
      await port.remove(apiKeys, ref())
      await expect.poll(() => port.get(secrets, ref()), { timeout: PATIENCE_MS }).toBeUndefined()
      expect(await port.get(secrets, ref('not-owned'))).toBeDefined()
    })
  })
}

async function refuses(call: Promise<unknown>, ...codes: readonly KubeErrorCode[]): Promise<void> {
  const outcome = await call.then(
    () => 'no refusal',
    (error: unknown) => error,
  )
  expect(isKubeError(outcome) ? outcome.code : outcome).toSatisfy(
    (code) => codes.includes(code as KubeErrorCode),
    `one of ${codes.join(', ')}`,
  )
}
