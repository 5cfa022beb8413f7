/**
 * Every way to remove Headgate or its objects: an uninstall with or without the data, a namespace that is no longer watched, finalizers removed
 * by force, and a deleted namespace. Nothing hangs, and no value of a deleted key ever works again.
 */
import { describe, expect, it } from 'vitest'
import { atOnce, numbered } from '../support/at-once.ts'
import { redisKeys } from '#contract/redis/redis-keys.ts'
import { chartRights, type RightsScope } from '../support/chart-rights.ts'
import { keyringSecrets } from '../support/durable-bytes.ts'
import { differences, untilEveryGateway } from '../support/gateway-answers.ts'
import { objectPath, type TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import type { Program } from '../support/program.ts'
import { sized, timeLimit } from '../support/sizes.ts'
import type { Stack } from '../support/stack.ts'
import { heldObjects, ownObjects, uninstall } from '../support/uninstall.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const KEYS = sized(200, 500)

const lab = openLab()

async function issue(stack: Stack, count: number, namespace = stack.namespace, prefix = 'key'): Promise<Map<string, string>> {
  const names = numbered(prefix, count)
  const spec = { models: ['*'] }
  await atOnce(names, (name) => stack.apply('ApiKey', name, spec, namespace))
  const isReady = (status: unknown): boolean =>
    JSON.stringify(status ?? {}).includes('"type":"Ready"') && !/"NotProgrammed"|"SecretNotIssued"/.test(JSON.stringify(status))
  await waitFor(`${count} keys to be Ready`, async () => (await stack.list('ApiKey', namespace)).every(({ status }) => isReady(status)), {
    deadlineMs: 240_000,
    everyMs: 500,
  })
  const values = new Map<string, string>()
  for (const name of names) values.set(name, await stack.value(name, namespace))
  return values
}

function parted(values: ReadonlyMap<string, string>, count: number): [Map<string, string>, Map<string, string>] {
  const all = [...values]
  return [new Map(all.slice(0, count)), new Map(all.slice(count))]
}

async function untilAll(stack: Stack, values: ReadonlyMap<string, string>, status: number): Promise<void> {
  await eventually(async () => expect((await differences(stack.gateways, values, status)).slice(0, 5)).toEqual([]), { everyMs: 250 })
}

async function restartAll(stack: Stack): Promise<void> {
  await Promise.all([...stack.operators, ...stack.gateways].map((program) => program.stop()))
  await stack.redis.stop()
  await stack.redis.start()
  for (const operator of stack.operators) await operator.start()
  for (const gateway of stack.gateways) await gateway.start()
}

describe.each(['with a running leader', 'without an operator'] as const)('uninstall, %s and one dead gateway', (leader) => {
  const suffix = leader === 'without an operator' ? 'alone' : 'led'

  async function installed(mode: string): Promise<{ stack: Stack; values: Map<string, string>; dead: Program }> {
    const stack = await lab.stack({ gateways: 2, namespaces: [`exits-${mode}-${suffix}`] })
    const values = await issue(stack, KEYS)
    const dead = stack.gateways[1]
    if (!dead) throw new Error('this stack has one gateway')
    await dead.kill('SIGSTOP')
    if (leader === 'without an operator') await stack.operator.stop()
    return { stack, values, dead }
  }

  it(
    '--keep: takes off the finalizers; after a reinstall the same values work, and keys deleted in between answer 401',
    async () => {
      const { stack, values, dead } = await installed('keep')
      const { code, text } = await uninstall(stack, '--keep')
      expect([code, (await heldObjects(stack)).slice(0, 5)], text.slice(-2000)).toEqual([0, []])
      await stack.operator.stop()
      expect(await keyringSecrets(stack)).not.toEqual([])
      const [deleted, kept] = parted(values, 20)
      for (const name of deleted.keys()) await stack.kube.remove(stack.path('ApiKey', name))
      for (const name of deleted.keys()) expect(await stack.kube.get(stack.path('ApiKey', name))).toBeUndefined()
      await dead.kill('SIGCONT')
      await stack.operator.start()
      await untilAll(stack, kept, 200)
      await untilAll(stack, deleted, 401)
      for (let restart = 0; restart < 2; restart++) {
        await restartAll(stack)
        await untilAll(stack, deleted, 401)
        await untilAll(stack, kept, 200)
      }
      await eventually(async () => expect((await heldObjects(stack)).length).toBe(kept.size)) // the reinstalled operator has set its finalizers again
    },
    timeLimit(600_000),
  )

  it(
    '--purge: finalizers, our Secrets, the Lease and the keys of our prefix in Redis are removed, and nothing else',
    async () => {
      const { stack, dead } = await installed('purge')
      await stack.redis.admin.set('somebody-elses', 'value')
      await stack.redis.admin.hset('hg:l:{of-a-key}:budget', { seed: 'one' })
      await stack.redis.admin.sadd('hg:l:settled', 'of-a-key')
      await stack.kube.apply(spendSecret(stack.operatorNamespace))
      const { code, text } = await uninstall(stack, '--purge')
      expect([code, (await heldObjects(stack)).slice(0, 5)], text.slice(-2000)).toEqual([0, []])
      await stack.operator.stop() // Helm deletes the Deployment after the Job
      await dead.kill('SIGCONT')
      await Promise.all(stack.gateways.map((gateway) => gateway.stop()))
      expect(await ownObjects(stack)).toEqual([])
      expect(await stack.redis.admin.keys('*')).toEqual(['somebody-elses'])
    },
    timeLimit(300_000),
  )
})

describe('uninstall --purge while Redis is away', () => {
  it(
    'keeps the id of the installation and says so; once Redis answers, a second run finds the data and deletes both',
    async () => {
      const stack = await lab.stack({ gateways: 1, namespaces: ['exits-purge-away'] })
      await issue(stack, 2)
      await stack.operator.stop()
      const meta = await stack.redis.admin.hgetall(redisKeys('hg').meta)
      expect(meta['installation']).toMatch(/^[0-9a-f-]{36}$/)
      await stack.redis.stop()
      const { text } = await uninstall(stack, '--purge')
      expect(await ownObjects(stack), text.slice(-2000)).toEqual(['hg-installation'])
      expect(text).toMatch(/Secret hg-installation is kept, because only its id tells which data in Redis are ours: run this command again/)
      await Promise.all(stack.gateways.map((gateway) => gateway.stop()))
      await stack.redis.start()
      await stack.redis.admin.hset(redisKeys('hg').meta, meta) // as a Redis with a disk has it
      const again = await uninstall(stack, '--purge')
      expect([await ownObjects(stack), await stack.redis.admin.keys('*')], again.text.slice(-2000)).toEqual([[], []])
    },
    timeLimit(300_000),
  )
})

/** A Secret such as the operator makes when a budget is spent. */
function spendSecret(namespace: string): TestObject {
  const labels = { 'app.kubernetes.io/managed-by': 'headgate-operator', 'headgate.dev/shards': 'spend' }
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'hg-spend-8-0', namespace, labels }, type: 'Opaque', data: {} }
}

async function replaceRights(stack: Stack, scope: Omit<RightsScope, 'own'>): Promise<void> {
  const rights = chartRights({ own: stack.operatorNamespace, ...scope })
  const paths = (objects: readonly TestObject[]): string[] =>
    objects.map(({ apiVersion, kind, metadata }) => objectPath(apiVersion, kind, metadata.namespace, metadata.name))
  const kept = new Set(paths(rights))
  for (const path of paths(stack.rights)) if (!kept.has(path)) await stack.kube.remove(path)
  for (const right of rights) await stack.kube.apply(right)
}

describe('a namespace that is no longer watched', () => {
  it(
    'is released: its finalizers are removed, its keys answer 401, and the keys of other namespaces work',
    async () => {
      const [stays, leaves] = ['exits-stays', 'exits-leaves']
      const stack = await lab.stack({ gateways: 2, namespaces: [stays, leaves] })
      const staying = await issue(stack, 5, stays)
      const leaving = await issue(stack, 50, leaves)
      await stack.operator.stop()
      await replaceRights(stack, { watched: [stays], former: [leaves] })
      await stack.operator.start({ WATCH_NAMESPACES: stays, FORMER_NAMESPACES: leaves })
      await untilAll(stack, leaving, 401)
      await eventually(async () => expect(await heldObjects(stack, [leaves])).toEqual([]))
      await untilAll(stack, staying, 200)
      await stack.kube.remove(stack.path('ApiKey', 'key-0', leaves))
      expect(await stack.kube.get(stack.path('ApiKey', 'key-0', leaves))).toBeUndefined()
      await stack.operator.restart() // an operator that never knew the namespace
      expect(await differences(stack.gateways, leaving, 401)).toEqual([])
      expect(await differences(stack.gateways, staying, 200)).toEqual([])
    },
    timeLimit(300_000),
  )
})

describe('finalizers removed by force', () => {
  it(
    'while no operator runs: every value of a deleted ApiKey answers 401, for any number of keys, even after two more restarts',
    async () => {
      const stack = await lab.stack({ gateways: 2, namespaces: ['exits-forced'] })
      const values = await issue(stack, 60)
      const [deleted, kept] = parted(values, 40) // most of the keys: more than any share that could look like an error of the cache
      await stack.operator.stop()
      for (const name of deleted.keys()) {
        await stack.kube.merge(stack.path('ApiKey', name), { metadata: { finalizers: null } })
        await stack.kube.remove(stack.path('ApiKey', name))
      }
      await restartAll(stack)
      await untilAll(stack, deleted, 401)
      await untilAll(stack, kept, 200)
      for (let restart = 0; restart < 2; restart++) {
        await restartAll(stack)
        expect(await differences(stack.gateways, deleted, 401), 'from the first answer on').toEqual([])
        await untilAll(stack, kept, 200)
      }
    },
    timeLimit(300_000),
  )

  it(
    'while everything runs: the values are refused without a restart',
    async () => {
      const stack = await lab.stack({ gateways: 2, namespaces: ['exits-forced-live'] })
      const values = await issue(stack, 30)
      for (const name of values.keys()) {
        await stack.kube
          .remove(stack.path('ApiKey', name))
          .then(() => stack.kube.merge(stack.path('ApiKey', name), { metadata: { finalizers: null } }).catch(() => undefined)) // already released
      }
      await untilAll(stack, values, 401)
      await eventually(async () => expect(await stack.list('ApiKey')).toEqual([]))
    },
    timeLimit(180_000),
  )
})

describe('a namespace that is deleted with its keys', () => {
  it(
    'ends, and every value is refused',
    async () => {
      const [home, doomed] = ['exits-home', 'exits-doomed']
      const stack = await lab.stack({ gateways: 2, namespaces: [home, doomed] })
      await grantClusterWide(stack)
      const values = await issue(stack, 100, doomed)
      await stack.kube.remove(objectPath('v1', 'Namespace', '', doomed))
      await waitFor(
        'the namespace to be deleted',
        async () => (await stack.kube.get(objectPath('v1', 'Namespace', '', doomed))) === undefined,
        {
          deadlineMs: 120_000,
          everyMs: 250,
        },
      )
      expect(await differences(stack.gateways, values, 401)).toEqual([])
      const credential = await stack.issueKey('goes-on', {}, home)
      await untilEveryGateway(stack.gateways, credential, 200)
    },
    timeLimit(300_000),
  )
})

/**
 * The right on ApiKeys as the default scope of the chart gives it. A RoleBinding in the namespace would be deleted with it, perhaps before
 * its ApiKeys, and then no program may remove their finalizers.
 */
async function grantClusterWide(stack: Stack): Promise<void> {
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const name = `${stack.operatorNamespace}-cluster-wide`
  const rules = [{ apiGroups: ['headgate.dev'], resources: ['apikeys'], verbs: ['get', 'patch'] }]
  const subjects = [{ kind: 'ServiceAccount', name: 'headgate-operator', namespace: stack.operatorNamespace }]
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
  await stack.kube.apply({ apiVersion, kind: 'ClusterRole', metadata: { name }, rules })
  await stack.kube.apply({ apiVersion, kind: 'ClusterRoleBinding', metadata: { name }, roleRef, subjects })
}
