/**
 * Bad environments of the gateway and the operator as real processes. An error that a restart cannot fix ends the program with one line that
 * names the remedy. For any other error the program is not ready, repeats a line with the remedy at a bounded rate, and recovers without a
 * restart. `make run` has its own tests (test/contract/standalone.test.ts): only it exits when REDIS_URL or MODEL_URL does not answer.
 */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { API_KINDS } from '#api/kinds.ts'
import type { ControlPlane } from '../support/control-plane.ts'
import { freePort } from '../support/free-port.ts'
import { objectPath, type TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import type { Program } from '../support/program.ts'
import type { RedisPart } from '../support/redis-part.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

/** A password that no program may print. */
const PASSWORD = 'hunter2-is-secret'
/** The operator of a test soon takes over the Lease that the operator of the former test handed back. */
const QUICK = { LEASE_RETRY_SECONDS: '0.2' }

const lab = openLab()
let plane: ControlPlane
/** The tests start the programs of this stack, one at a time. */
let stack: Stack
let program: Program | undefined
const servers: Server[] = []

beforeAll(async () => {
  plane = await lab.ownControlPlane()
  stack = await lab.stack({ gateways: 0, operators: 0, operatorEnv: QUICK, gatewayEnv: { KEYRING_DIR: '' } }, plane)
  const writer = await stack.addOperator() // gateways need a projection to become ready
  await waitFor('a projection', async () => (await stack.redis.admin.exists('hg:{proj}:meta')) === 1)
  await writer.stop()
})
afterEach(async () => {
  await program?.stop()
  program = undefined
  for (const server of servers.splice(0)) server.close()
})

type Env = Readonly<Record<string, string>>

async function launch(which: 'gateway' | 'operator', env: Env = {}): Promise<Program> {
  program = await (which === 'gateway' ? stack.addGateway({ start: false, env }) : stack.addOperator({ start: false, env }))
  await program.launch()
  return program
}

async function lastWords(which: 'gateway' | 'operator', env: Env): Promise<string[]> {
  const { process } = await launch(which, env)
  expect(await process.ended).toEqual({ code: 1, signal: null })
  expect(process.log()).not.toContain(PASSWORD)
  return process
    .log()
    .trim()
    .split('\n')
    .filter((line) => !line.startsWith('{'))
}

function complaints(of: Program): string[] {
  const lines = of.process
    .log()
    .split('\n')
    .filter((line) => line.startsWith('{'))
  const entries = lines.map((line) => JSON.parse(line) as { level: string; msg: string })
  return entries.filter(({ level }) => level === 'warn' || level === 'error').map(({ msg }) => msg)
}

async function expectPatience(of: Program, line: RegExp): Promise<void> {
  const startedAt = performance.now()
  const most = (): number => {
    const matching = complaints(of).filter((message) => line.test(message))
    return Math.max(0, ...matching.map((message) => matching.filter((other) => other === message).length))
  }
  await waitFor(`${line} twice`, () => most() >= 2).catch((error: unknown) => {
    throw new Error(`${String(error)}; it said ${JSON.stringify([...new Set(complaints(of))])}`, { cause: error })
  })
  expect(of.process.running).toBe(true)
  expect(await of.isReady()).toBe(false)
  expect(most(), 'not a flood').toBeLessThanOrEqual(4 + (performance.now() - startedAt) / 500)
  expect(of.process.log()).not.toContain(PASSWORD)
}

async function expectRecovery(of: Program): Promise<void> {
  const { pid } = of.process
  await of.ready()
  expect(of.process.pid).toBe(pid)
}

describe('what a restart cannot fix', () => {
  it('several wrong settings of the gateway are reported at once', async () => {
    const REDIS_URL = `http://user:${PASSWORD}@redis`
    const lines = await lastWords('gateway', { PORT: 'many', REDIS_URL, ACCESS_LOG: 'some', COLD_START: 'maybe', DRAIN_SECONDS: '-1' })
    expect(lines.toSorted()).toEqual([
      expect.stringMatching(/^gateway: ACCESS_LOG: "some" .+; set it to errors, sample or all$/),
      expect.stringMatching(/^gateway: COLD_START: "maybe" .+; set it to Keyring or RequireRedis$/),
      expect.stringMatching(/^gateway: DRAIN_SECONDS: "-1" .+; set it to a number from 0 to 3600$/),
      expect.stringMatching(/^gateway: PORT: "many" .+; set it to a free port/),
      expect.stringMatching(/^gateway: REDIS_URL: the value is not the URL of a Redis; set it to redis:\/\//),
    ])
  })

  it('several wrong settings of the operator are reported at once', async () => {
    const env = { NAMESPACE: '', REDIS_URL: `redis//:${PASSWORD}@redis`, PUBLIC_URL: 'gateway', LOG_LEVEL: 'loud', KEYRING_SHARDS: '0' }
    const lines = await lastWords('operator', env)
    expect(lines.toSorted()).toEqual([
      expect.stringMatching(/^headgate-operator: KEYRING_SHARDS: "0" .+; set it to a number from 1 to 1024$/),
      expect.stringMatching(/^headgate-operator: LOG_LEVEL: "loud" .+; set it to debug, info, warn or error$/),
      expect.stringMatching(/^headgate-operator: NAMESPACE: is not set; /),
      expect.stringMatching(/^headgate-operator: PUBLIC_URL: "gateway" is not an http\(s\) URL; set it to /),
      expect.stringMatching(/^headgate-operator: REDIS_URL: the value is not the URL of a Redis; set it to redis:\/\//),
    ])
  })

  it.each<[string, 'gateway' | 'operator', () => Env, RegExp]>([
    [
      'times of the Lease that cannot work',
      'operator',
      () => ({ LEASE_RENEW_SECONDS: '16' }),
      /LEASE_DURATION_SECONDS > .+ must hold; raise/,
    ],
    ['a missing kubeconfig', 'operator', () => ({ KUBECONFIG: '/nowhere' }), /KUBECONFIG \/nowhere: .+; name a readable kubeconfig/],
    ['an invalid kubeconfig', 'operator', () => ({ KUBECONFIG: brokenKubeconfig() }), /KUBECONFIG .+; name a readable kubeconfig/],
    ['a missing CA file of Redis', 'gateway', () => TLS_WITHOUT_CA, /REDIS_CA_FILE: \/nowhere cannot be read; mount .+ or unset it/],
    ['a missing CA file of Redis', 'operator', () => TLS_WITHOUT_CA, /REDIS_CA_FILE: \/nowhere cannot be read; mount .+ or unset it/],
    ['a missing CA file', 'gateway', () => ({ UPSTREAM_CA_FILE: '/nowhere' }), /UPSTREAM_CA_FILE: \/nowhere cannot be read; mount/],
  ])('%s: the %s ends with one line', async (_, which, env, line) => {
    const lines = await lastWords(which, env())
    expect(lines).toEqual([expect.stringMatching(line)])
  })

  it.each([
    ['gateway', 'PORT'],
    ['gateway', 'METRICS_PORT'],
    ['operator', 'METRICS_PORT'],
  ] as const)('a port that is taken: the %s ends with one line that names %s', async (which, setting) => {
    const holder = createServer().listen(0)
    servers.push(holder)
    await once(holder, 'listening')
    const address = holder.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const lines = await lastWords(which, { [setting]: String(port) })
    expect(lines).toEqual([expect.stringMatching(new RegExp(`: ${setting}: port ${port} is taken .+; .*set ${setting} to a free port$`))])
  })

  it.each(['gateway', 'operator'] as const)('a Redis that evicts keys: the %s ends with one line', async (which) => {
    const evicting = await lab.redis({ policy: 'allkeys-lru' })
    const lines = await lastWords(which, evicting.envFor(which))
    expect(lines).toEqual([
      expect.stringMatching(/REDIS_URL: .+ \(maxmemory-policy allkeys-lru\); set "maxmemory-policy noeviction" there$/),
    ])
    await evicting.stop()
  })
})

const TLS_WITHOUT_CA = { REDIS_URL: 'rediss://10.250.7.1:1', REDIS_CA_FILE: '/nowhere' }

function brokenKubeconfig(): string {
  const file = join(lab.folder, 'broken.kubeconfig')
  writeFileSync(file, `users: [{ name: me, user: { token: ${PASSWORD} } }\nclusters: {`)
  return file
}

describe.each(['gateway', 'operator'] as const)('the %s waits, with the remedy in its log, for Redis:', (which) => {
  it('unreachable', async () => {
    const port = await freePort()
    const waiting = await launch(which, { REDIS_URL: `redis://${lab.address.ip}:${port}` })
    await expectPatience(waiting, new RegExp(`Redis at ${lab.address.ip}:${port} does not answer .+; check that it runs`))
    await forward(port, stack.redis.port)
    await expectRecovery(waiting)
  })

  it('a host name that does not resolve', async () => {
    const waiting = await launch(which, { REDIS_URL: 'redis://redis.nowhere.invalid' })
    await expectPatience(waiting, /Redis at redis\.nowhere\.invalid:6379: its name does not resolve .+; correct REDIS_URL or wait/)
  })

  it('a wrong password', async () => {
    const waiting = await launch(which, { REDIS_PASSWORD: PASSWORD })
    await expectPatience(waiting, new RegExp(`refuses the credentials of user "${which}"; correct REDIS_USERNAME and REDIS_PASSWORD`))
    await acl(stack.redis, which, `>${PASSWORD}`)
    await expectRecovery(waiting)
    await acl(stack.redis, which, `<${PASSWORD}`)
  })

  it('a missing right', async () => {
    const right = which === 'gateway' ? 'xread' : 'hgetall'
    await acl(stack.redis, which, `-${right}`)
    const waiting = await launch(which)
    await expectPatience(
      waiting,
      new RegExp(`does not let user "${which}" do this \\(.*NOPERM.*${right}.*\\); give that user the ACL rules of`),
    )
    await acl(stack.redis, which, `+${right}`)
    await expectRecovery(waiting)
  })
})

async function acl(redis: RedisPart, user: string, ...rules: string[]): Promise<void> {
  await redis.admin.call('ACL', 'SETUSER', user, ...rules)
}

async function forward(port: number, target: number): Promise<void> {
  const server = createServer((socket) => {
    const other = connect(target, lab.address.ip)
    socket.on('error', () => other.destroy()).on('close', () => other.destroy())
    other.on('error', () => socket.destroy()).on('close', () => socket.destroy())
    socket.pipe(other).pipe(socket)
  })
  servers.push(server)
  server.listen(port, lab.address.ip)
  await once(server, 'listening')
}

describe('the operator waits, with the remedy in its log, for the API server:', () => {
  it('unreachable', async () => {
    const port = await freePort()
    const kubeconfig = join(lab.folder, 'unreachable.kubeconfig')
    await plane.kubeconfigFor(stack.operatorNamespace, 'headgate-operator', kubeconfig, `https://${lab.address.ip}:${port}`)
    const waiting = await launch('operator', { KUBECONFIG: kubeconfig })
    await expectPatience(waiting, /^the API server does not answer \(.*ECONNREFUSED.*\); check that it runs and that KUBECONFIG/)
    await forward(port, plane.address.port)
    await expectRecovery(waiting)
  })

  it('refused credentials', async () => {
    const kubeconfig = join(lab.folder, 'stale.kubeconfig')
    await plane.kubeconfigFor(stack.operatorNamespace, 'headgate-operator', kubeconfig)
    const good = await plane.kubectl('--kubeconfig', kubeconfig, 'config', 'view', '--raw', '-o', 'json')
    writeFileSync(kubeconfig, good.replace(/"token":\s*"[^"]+"/, `"token":"${PASSWORD}"`))
    const waiting = await launch('operator', { KUBECONFIG: kubeconfig })
    await expectPatience(waiting, /does not accept the operator's credentials: check the kubeconfig or the ServiceAccount token/)
    writeFileSync(kubeconfig, good)
    await expectRecovery(waiting)
  })

  it('no rights at all', async () => {
    const bindings = stack.rights.filter(({ kind }) => kind.endsWith('RoleBinding'))
    for (const binding of bindings) await stack.kube.remove(pathOf(binding))
    const waiting = await launch('operator')
    await expectPatience(
      waiting,
      /no right to list and watch apikeys\.headgate\.dev .+: grant get, list and watch to the operator's ServiceAccount/,
    )
    for (const binding of bindings) await stack.kube.apply(binding)
    await expectRecovery(waiting)
  })

  it('a missing right to write the keyring: no key is issued, and issuing continues once the right is granted', async () => {
    const roles = stack.rights.filter(({ kind }) => kind === 'Role' || kind === 'ClusterRole')
    for (const role of roles) await stack.kube.apply(withoutSecretWrites(role))
    const running = await launch('operator')
    await stack.apply('ApiKey', 'patient')
    await waitFor('its line', () => complaints(running).some((message) => /secrets.*(403|[Ff]orbidden).*grant/.test(message))).catch(() => {
      throw new Error(`it said ${JSON.stringify([...new Set(complaints(running))])}`)
    })
    expect(await stack.kube.get(objectPath('v1', 'Secret', stack.namespace, 'patient'))).toBeUndefined()
    for (const role of roles) await stack.kube.apply(role)
    await stack.untilCondition('ApiKey', 'patient', 'SecretIssued')
    expect(running.process.running).toBe(true)
  })

  it('no CustomResourceDefinitions', async () => {
    await plane.kubectl('delete', 'crd', ...API_KINDS.map(({ resource }) => `${resource.plural}.headgate.dev`), '--wait=false')
    await stack.kube.merge(stack.path('ApiKey', 'patient'), { metadata: { finalizers: null } }).catch(() => undefined) // no operator runs to remove them
    await eventually(async () => expect(await plane.kubectl('get', 'crd')).not.toContain('headgate.dev'))
    const waiting = await launch('operator')
    await expectPatience(waiting, /does not serve apikeys\.headgate\.dev: install the CustomResourceDefinitions/)
    await plane.applyCrds()
    await expectRecovery(waiting)
  })
})

function pathOf({ apiVersion, kind, metadata }: TestObject): string {
  return objectPath(apiVersion, kind, metadata.namespace, metadata.name)
}

function withoutSecretWrites(role: TestObject): TestObject {
  const rules = role.rules as readonly { resources: string[]; verbs: string[] }[]
  const reading = ({ verbs }: { verbs: string[] }): string[] => verbs.filter((verb) => ['get', 'list', 'watch'].includes(verb))
  return { ...role, rules: rules.map((rule) => (rule.resources.includes('secrets') ? { ...rule, verbs: reading(rule) } : rule)) }
}
