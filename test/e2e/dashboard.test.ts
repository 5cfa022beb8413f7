/** People who sign up in a cluster: from `helm install` to a verified Account, through a proxy and real mail. Each test needs those before it. */
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { type Cluster, timed } from './cluster.ts'
import type { Shown } from './person.ts'
import { useCluster } from './use-cluster.ts'

const MANIFESTS = join(import.meta.dirname, 'manifests')
const VALUES = ['values.yaml', 'dashboard-values.yaml'].flatMap((file) => ['--values', join(MANIFESTS, file)])
const INSTALL = ['install', 'headgate', 'charts/headgate', '-n', 'headgate', ...VALUES, '--wait', '--timeout', '120s']
const PERSON = readFileSync(join(import.meta.dirname, 'person.ts'), 'utf8')
const NON_ROOT = 65_532
const PLAN = 'apiVersion: headgate.dev/v1alpha1\nkind: Plan\nmetadata: { name: default }\nspec: { models: [llama] }\n'
const ADA = { email: 'ada@example.net', password: 'four quiet herons wade' }

/** The volume. No volume of this cluster outlives a pod by itself. */
const folder = mkdtempSync(join(tmpdir(), 'headgate-dashboard-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const { cluster } = useCluster(prepare)

async function prepare(target: Cluster): Promise<void> {
  chownSync(folder, NON_ROOT, NON_ROOT) // a folder of the node does not get the group of the pod
  const labels = '{ pod-security.kubernetes.io/enforce: restricted }'
  await target.apply(
    ['headgate', 'front'].map((name) => `apiVersion: v1\nkind: Namespace\nmetadata: { name: ${name}, labels: ${labels} }\n`).join('---\n'),
  )
  await target.apply(readFileSync(join(MANIFESTS, 'dashboard.yaml'), 'utf8').replaceAll('VOLUME', folder))
  const secret = '--from-literal=DASHBOARD_SECRET=0123456789abcdef0123456789abcdef'
  await target.kubectl('-n', 'headgate', 'create', 'secret', 'generic', 'headgate-dashboard', secret)
  await target.kubectl('-n', 'front', 'wait', '--for=condition=Ready', 'pod/person', 'pod/dashboard-front', '--timeout=60s')
}

async function visit(path: string, cookies = '', form?: Readonly<Record<string, string>>): Promise<Shown> {
  const node = ['/usr/local/bin/node', '--input-type=module-typescript', '-e', PERSON, path, cookies]
  const posted = form === undefined ? [] : [String(new URLSearchParams(form))]
  return JSON.parse(await cluster.kubectl('-n', 'front', 'exec', 'person', '--', ...node, ...posted)) as Shown
}

/** The link of the newest mail. */
async function mailedToken(): Promise<string | undefined> {
  const mails = (await cluster.kubectl('-n', 'front', 'logs', 'person')).replaceAll(/=\r?\n/g, '')
  return [...mails.matchAll(/token=3D([\w.-]+)/g)].at(-1)?.[1]
}

async function accountsOfPeople(): Promise<ReadonlyArray<Readonly<Record<string, unknown>>>> {
  const list = await cluster.kubectl('get', 'accounts', '-l', 'headgate.dev/created-by=dashboard', '-o', 'json')
  return (JSON.parse(list) as { items: Record<string, unknown>[] }).items
}

async function untilSignedIn(): Promise<Shown> {
  await expect.poll(async () => (await visit('/sign-in', '', ADA)).status, { timeout: 60_000, interval: 500 }).toBe(303)
  return await visit('/sign-in', '', ADA)
}

describe('the dashboard on a real node', () => {
  let session = ''

  it('is installed by helm under the restricted profile, with its database on a volume', async () => {
    await timed('helm install', () => cluster.helm(...INSTALL))
    await cluster.apply(PLAN)
    await cluster.kubectl('-n', 'headgate', 'rollout', 'status', 'deployment/headgate-dashboard', '--timeout=60s')
    expect(await cluster.kubectl('-n', 'headgate', 'get', 'pvc', 'headgate-dashboard', '-o', 'jsonpath={.status.phase}')).toBe('Bound')
  })

  it('takes a person from sign-up through a mail to an Account that is Ready', async () => {
    const signedUp = await visit('/sign-up', '', ADA)
    expect(signedUp).toMatchObject({ status: 303, location: '/check-your-mail' })
    await expect.poll(mailedToken, { timeout: 60_000, interval: 500 }).toBeDefined()
    const token = (await mailedToken()) ?? ''
    const verified = await visit('/verify', signedUp.cookies, { token })
    expect(verified).toMatchObject({ status: 303, location: '/' })
    session = verified.cookies
    expect(JSON.parse((await visit('/api/me', session)).text)).toMatchObject({ person: { email: ADA.email } })
    const [account] = await accountsOfPeople()
    const name = (account?.['metadata'] as { name: string } | undefined)?.name ?? ''
    await cluster.kubectl('wait', '--for=condition=Ready', `account/${name}`, '--timeout=60s')
    expect(account?.['spec']).toMatchObject({ owner: { email: ADA.email, emailVerification: 'Verified' }, planRef: { name: 'default' } })
  })

  it('keeps people and sessions when its pod is replaced', async () => {
    await cluster.kubectl('-n', 'headgate', 'rollout', 'restart', 'deployment/headgate-dashboard')
    await cluster.kubectl('-n', 'headgate', 'rollout', 'status', 'deployment/headgate-dashboard', '--timeout=60s')
    await expect.poll(async () => (await visit('/api/me', session)).status, { timeout: 30_000, interval: 500 }).toBe(200)
  })

  it('writes no warning and no secret into its log', async () => {
    const logs = await cluster.kubectl('-n', 'headgate', 'logs', 'deployment/headgate-dashboard')
    expect(logs).not.toMatch(/"level":"(warn|error)"/)
    for (const secret of [ADA.password, session, (await mailedToken()) ?? 'no mail']) expect(logs).not.toContain(secret)
  })

  it('leaves the volume and the namespace of the keys at an uninstall, and goes on with both after an install', async () => {
    await cluster.helm('uninstall', 'headgate', '-n', 'headgate', '--wait', '--timeout', '120s')
    await cluster.kubectl('get', 'namespace', 'headgate-accounts')
    await timed('helm install, again', () => cluster.helm(...INSTALL))
    const { cookies } = await untilSignedIn()
    expect(JSON.parse((await visit('/api/me', cookies)).text)).toMatchObject({ person: { email: ADA.email }, account: { isReady: true } })
    expect(await accountsOfPeople()).toHaveLength(1)
  })
})
