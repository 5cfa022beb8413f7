import { beforeEach, describe, expect, test } from 'vitest'
import { ObjectStore } from '../../standalone/object-store.ts'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { KubeError, type KubePort } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { holdCurrency, INSTALLATION_SECRET, readInstallation } from './installation.ts'

const NAMESPACE = 'headgate'
const REF = { namespace: NAMESPACE, name: INSTALLATION_SECRET }

describe('the identity of an installation', () => {
  let objects: ObjectStore
  beforeEach(() => {
    objects = new ObjectStore()
  })

  const whole = (kube: KubePort = objects) => readInstallation({ kube, namespace: NAMESPACE })
  const read = async (kube: KubePort = objects): Promise<string> => (await whole(kube)).id

  test('is made at the first start, and stays', async () => {
    const id = await read()
    expect(id).toMatch(/^[0-9a-f-]{36}$/)
    expect(await read()).toBe(id)
    expect(await objects.get(secrets, REF)).toMatchObject({
      type: 'Opaque',
      metadata: { labels: { 'app.kubernetes.io/managed-by': 'headgate-operator' } },
    })
  })

  test('is the identity that a former leader wrote in the same moment', async () => {
    let theirs = ''
    const kube = new FakeKubePort(objects)
    kube.before = async ({ verb }) => {
      if (verb === 'create') theirs ||= await read()
    }
    expect(await read(kube)).toBe(theirs)
  })

  test.each(['', 'not an id'])('is created again if its Secret was emptied: %j', async (text) => {
    const former = await read()
    const secret = await objects.get(secrets, REF)
    if (!secret) throw new Error('no Secret')
    await objects.update(secrets, { ...secret, data: { id: Buffer.from(text).toString('base64') } })
    const id = await read()
    expect(id).not.toBe(former)
    expect(await read()).toBe(id)
  })

  test('has a secret of its own that stays', async () => {
    const own = await whole()
    expect(own.secret).toMatch(/^[\w-]{43}$/)
    expect(await whole()).toEqual(own)
    objects = new ObjectStore()
    expect((await whole()).secret).not.toBe(own.secret)
  })

  test('keeps its identity where only the secret is lost', async () => {
    const own = await whole()
    const stored = (await objects.get(secrets, REF))!
    await objects.update(secrets, { ...stored, data: { ...stored.data, secret: '' } })
    const next = await whole()
    expect(next.id).toBe(own.id)
    expect(next.secret).not.toBe(own.secret)
    expect(await whole()).toEqual(next)
  })

  test('is not invented while the API server does not answer', async () => {
    const kube = new FakeKubePort(objects)
    kube.before = () => Promise.reject(new KubeError('Forbidden', 403, 'no Role'))
    await expect(read(kube)).rejects.toThrow('no Role')
    expect(await objects.list(secrets, NAMESPACE)).toEqual([])
  })
})

describe('the currency of an installation', () => {
  let objects: ObjectStore
  beforeEach(() => {
    objects = new ObjectStore()
  })

  const hold = (currency: string): Promise<string> => holdCurrency({ kube: objects, namespace: NAMESPACE, currency })

  test('is that of the first start, and another setting does not change it', async () => {
    const own = await readInstallation({ kube: objects, namespace: NAMESPACE })
    expect([await hold('EUR'), await hold('USD')]).toEqual(['EUR', 'EUR'])
    expect(await readInstallation({ kube: objects, namespace: NAMESPACE })).toEqual(own)
  })

  test('stays where the id is lost and made again', async () => {
    await readInstallation({ kube: objects, namespace: NAMESPACE })
    await hold('EUR')
    const secret = (await objects.get(secrets, REF))!
    await objects.update(secrets, { ...secret, data: { ...secret.data, id: '' } })
    await readInstallation({ kube: objects, namespace: NAMESPACE })
    expect(await hold('USD')).toBe('EUR')
  })

  test('is not stored before the installation has an id', async () => {
    await expect(hold('EUR')).rejects.toThrow(INSTALLATION_SECRET)
  })
})
