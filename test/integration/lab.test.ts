import { appendFileSync, mkdtempSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { packShard } from '#contract/records/shard-text.ts'
import { objectPath } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import type { RedisPart } from '../support/redis-part.ts'
import { SecretMirror } from '../support/secret-mirror.ts'
import { searchForValues } from '../support/secret-search.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { eventually } from '../support/wait-for.ts'

/** The parts that every other integration test uses. */
const lab = openLab()

describe('the API server', () => {
  it('serves our kinds and refuses what their schema refuses', async () => {
    await lab.plane.namespace('lab-kinds')
    const apiKey = (spec: unknown) => ({
      apiVersion: 'headgate.dev/v1alpha1',
      kind: 'ApiKey',
      metadata: { name: 'bot', namespace: 'lab-kinds' },
      spec,
    })
    await expect(lab.plane.admin.apply(apiKey({ models: [] }))).rejects.toThrow('422')
    await expect(lab.plane.admin.apply(apiKey({ displayName: 'Bot', models: ['*'] }))).resolves.toMatchObject({ spec: { state: 'Active' } })
  })

  it('garbage-collects an object whose owner is deleted', async () => {
    const { admin } = lab.plane
    await lab.plane.namespace('lab-owner')
    const owner = await admin.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owner', namespace: 'lab-owner' } })
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid }]
    const child = objectPath('v1', 'Secret', 'lab-owner', 'child')
    await admin.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'child', namespace: 'lab-owner', ownerReferences } })
    await admin.remove(objectPath('v1', 'ConfigMap', 'lab-owner', 'owner'))
    await eventually(async () => expect(await admin.get(child)).toBeUndefined())
  })

  it('that a test file starts for itself restarts with its data after SIGKILL', async () => {
    const plane = await lab.ownControlPlane()
    await plane.namespace('survivor')
    plane.signal('kube-apiserver', 'SIGKILL')
    await plane.restart('kube-apiserver')
    expect(await plane.admin.get(objectPath('v1', 'Namespace', '', 'survivor'))).toMatchObject({ kind: 'Namespace' })
  })
})

describe('Redis', () => {
  let redis: RedisPart
  beforeAll(async () => {
    redis = await lab.redis()
  })

  it('lets the operator write below its prefix and to no other key', async () => {
    const operator = redis.connect('operator')
    await expect(operator.hset('hg:{proj}:meta', 'rev', 1)).resolves.toBe(1)
    await expect(operator.set('other', 1)).rejects.toThrow('NOPERM')
    await expect(operator.flushall()).rejects.toThrow('NOPERM')
    operator.disconnect()
  })

  it('lets a gateway read the projection and write its heartbeat, but neither mint a key nor list names', async () => {
    const gateway = redis.connect('gateway')
    await expect(gateway.hmget('hg:{proj}:meta', 'rev')).resolves.toEqual(['1'])
    await expect(gateway.zadd('hg:{proj}:pods', 1, 'pod/1')).resolves.toBe(1)
    await expect(gateway.hset('hg:{proj}:acks', 'pod/1', '{}')).resolves.toBe(1)
    await expect(gateway.hset('hg:{proj}:e1:keys', 'uid', '{}')).rejects.toThrow('NOPERM')
    await expect(gateway.eval("return redis.call('hset', KEYS[1], 'uid', '{}')", 1, 'hg:{proj}:e1:keys')).rejects.toThrow('NOPERM')
    await expect(gateway.keys('*')).rejects.toThrow('NOPERM')
    gateway.disconnect()
  })

  it('has the policy noeviction, and is empty after a restart', async () => {
    expect(await redis.admin.info('memory')).toContain('maxmemory_policy:noeviction')
    await redis.stop()
    await redis.start()
    expect(await redis.dump()).toBe('')
  })
})

it('the model server answers an unmodified SDK', async () => {
  const client = new OpenAI({ baseURL: `${lab.address.modelServer.url}/v1`, apiKey: 'none' })
  const answer = await client.chat.completions.create({ model: 'tiny', max_tokens: 5, messages: [{ role: 'user', content: 'hello' }] })
  expect(answer.usage?.completion_tokens).toBe(5)
})

it('mounted Secrets follow the API server as in a projected volume: a new folder behind one link', async () => {
  await lab.plane.namespace('lab-mirror')
  const mirror = new SecretMirror(mkdtempSync(join(lab.folder, 'mirror-')))
  mirror.follow(lab.plane.admin, 'lab-mirror')
  const shard = await packShard({ shards: 2, shard: 1 }, [])
  const secret = (name: string, data: Record<string, string>) =>
    lab.plane.admin.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'lab-mirror' }, data })
  await secret('hg-keyring-2-1', { records: shard.toString('base64') })
  await secret('hg-upstream-8-0', { 'upstream.uid.b': Buffer.from('token').toString('base64') })
  await mirror.until('both Secrets to be mirrored', (files) => files.size === 2)
  expect(readFileSync(join(mirror.folder, 'keyring/2-1'))).toEqual(shard)
  expect(readFileSync(join(mirror.folder, 'upstream.uid.b'), 'utf8')).toBe('token')

  const before = readlinkSync(join(mirror.folder, '..data'))
  mirror.pause()
  await lab.plane.admin.remove(objectPath('v1', 'Secret', 'lab-mirror', 'hg-upstream-8-0'))
  await mirror.until('the deletion to be seen', (files) => files.size === 1)
  expect(readlinkSync(join(mirror.folder, '..data'))).toBe(before)
  mirror.resume()
  expect(readdirSync(mirror.folder).filter((name) => !name.startsWith('..'))).toEqual(['keyring'])
  mirror.stop()
})

it('the search for issued values finds a value in a log, and reports the place without the value', () => {
  const value = `sk-hg1${'a'.repeat(10)}${'B'.repeat(43)}000000`
  const folder = temporaryFolder()
  appendFileSync(join(folder, 'issued-values'), `${value}\n`)
  appendFileSync(join(folder, 'quiet.log'), 'sk-hg1aaaaaaaaaa…0000 was issued\n')
  expect(searchForValues(folder)).toMatchObject({ values: 1, files: 1, leaks: [] })
  appendFileSync(join(folder, 'loud.log'), `authorization: Bearer ${value}\n`)
  const { leaks } = searchForValues(folder)
  expect(leaks.map(({ file }) => file)).toContain('loud.log')
  expect(JSON.stringify(leaks)).not.toContain('BBBB')
})
