/**
 * One Headgate of a test file's own: operator, gateways and Redis, in namespaces of its own on the shared API server. The work of a kubelet
 * and of the endpoint controller is done here: the gateway Service's EndpointSlice, and the mounted Secrets.
 */
import { join } from 'node:path'
import { chartRights } from './chart-rights.ts'
import type { ControlPlane } from './control-plane.ts'
import { conditionOf, conditionsOf, objectPath, type KubeAdmin, type TestObject } from './kube-admin.ts'
import { Program } from './program.ts'
import { RedisPart } from './redis-part.ts'
import { SecretMirror } from './secret-mirror.ts'
import { HASHES_ALLOWED } from './searched-files.ts'
import { keepRedisDump } from './secret-search.ts'
import { waitFor } from './wait-for.ts'

const GATEWAY_SERVICE = 'headgate-gateway'
const GROUP = 'headgate.dev/v1alpha1'

export interface StackOptions {
  readonly gateways?: number
  readonly operators?: number
  readonly operatorEnv?: Readonly<Record<string, string>>
  readonly gatewayEnv?: Readonly<Record<string, string>>
  /** User namespaces that the operator watches; the first is `stack.namespace`. Default: one, named after the stack. */
  readonly namespaces?: readonly string[]
  /** Namespaces that it has rights to release; the caller makes them, and sets FORMER_NAMESPACES when it wants it. */
  readonly formerNamespaces?: readonly string[]
  /** Address of the API server for the operator, for example that of a proxy. */
  readonly apiServer?: string
  /** false: everything is prepared, no program runs. */
  readonly start?: boolean
}

type OwnKind = 'ApiKey' | 'ServedModel' | 'Plan' | 'Account'
const CLUSTER_SCOPED: ReadonlySet<OwnKind> = new Set(['Plan', 'Account'])

/** The expected condition; `reason` undefined = any. */
export interface Expected {
  readonly namespace?: string
  readonly status?: 'True' | 'False' | 'Unknown'
  readonly reason?: string
  /** Longest wait, ms; default: 90 s. */
  readonly deadlineMs?: number
}

export interface AddOptions {
  readonly start?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** Folder with the bundles of another version. */
  readonly bundles?: string
  /** Address of the API server that this operator alone is given. */
  readonly apiServer?: string
}

export interface StackSite {
  readonly name: string
  readonly ip: string
  readonly folder: string
  readonly plane: ControlPlane
  readonly modelServer: { readonly url: string; readonly port: number }
}

/** A whole Headgate; `close` it in afterAll. */
export class Stack {
  readonly site: StackSite
  readonly options: StackOptions
  readonly redis: RedisPart
  readonly mirror: SecretMirror
  readonly operators: Program[] = []
  readonly gateways: Program[] = []
  readonly operatorNamespace: string
  readonly namespaces: readonly string[]
  /** Number of pods ever made of each kind, since a name is never used twice, as in a cluster. */
  readonly #added = { gateway: 0, operator: 0 }

  private constructor(site: StackSite, options: StackOptions, redis: RedisPart) {
    this.site = site
    this.options = options
    this.redis = redis
    this.operatorNamespace = `headgate-${site.name}`
    this.namespaces = options.namespaces ?? [site.name]
    this.mirror = new SecretMirror(join(site.folder, HASHES_ALLOWED, `keyring-${site.name}`))
  }

  static async open(site: StackSite, options: StackOptions = {}): Promise<Stack> {
    const redis = await RedisPart.start(join(site.folder, 'redis', site.name), site.ip)
    const stack = new Stack(site, options, redis)
    for (const namespace of [stack.operatorNamespace, ...stack.namespaces]) await site.plane.namespace(namespace)
    for (const right of stack.rights) await stack.kube.apply(right)
    stack.mirror.follow(stack.kube, stack.operatorNamespace)
    for (let i = 0; i < (options.gateways ?? 1); i++) await stack.addGateway({ start: false })
    for (let i = 0; i < (options.operators ?? 1); i++) await stack.addOperator({ start: false })
    await stack.publishGateways()
    if (options.start !== false) await Promise.all([...stack.operators, ...stack.gateways].map((program) => program.start()))
    return stack
  }

  get kube(): KubeAdmin {
    return this.site.plane.admin
  }

  /** The rights and the admission policy of this operator, as in the chart. */
  get rights(): TestObject[] {
    return chartRights({ own: this.operatorNamespace, watched: this.namespaces, former: this.options.formerNamespaces ?? [] })
  }

  get namespace(): string {
    return this.namespaces[0] ?? this.site.name
  }

  get operator(): Program {
    return first(this.operators, 'operator')
  }

  get gateway(): Program {
    return first(this.gateways, 'gateway')
  }

  /** Makes one more gateway pod. Its address is not published: see `publishGateways`. */
  async addGateway(options: AddOptions = {}): Promise<Program> {
    const env = {
      ...this.redis.envFor('gateway'),
      KEYRING_DIR: this.mirror.folder,
      DEREGISTRATION_SECONDS: '0', // no caller here sends requests to a removed endpoint
      ACCESS_LOG: 'all',
      CLUSTER_ADDRESS_NAMESPACES: '*', // the servers of the tests have addresses of this machine
      ...this.options.gatewayEnv,
      ...options.env,
    }
    return this.#add(this.gateways, 'gateway', env, options)
  }

  /** Makes one more operator pod: a standby while another one leads. It runs as its ServiceAccount, never as administrator. */
  async addOperator(options: AddOptions = {}): Promise<Program> {
    const kubeconfig = join(this.site.folder, `${this.site.name}-operator-${this.#added.operator}.kubeconfig`)
    const server = options.apiServer ?? this.options.apiServer
    await this.site.plane.kubeconfigFor(this.operatorNamespace, 'headgate-operator', kubeconfig, server)
    const env = {
      ...this.redis.envFor('operator'),
      KUBECONFIG: kubeconfig,
      NAMESPACE: this.operatorNamespace,
      WATCH_NAMESPACES: this.namespaces.join(','),
      NAMESPACE_LABELS: 'true', // as in the render that the rights are from
      GATEWAY_SERVICE,
      PUBLIC_URL: this.gateways[0]?.url ?? 'http://headgate.example',
      UNPROVEN_HASH_NAMESPACES: '*',
      CLUSTER_ADDRESS_NAMESPACES: '*',
      ...this.options.operatorEnv,
      ...options.env,
    }
    return this.#add(this.operators, 'operator', env, options)
  }

  async #add(to: Program[], program: 'gateway' | 'operator', env: Record<string, string>, options: AddOptions): Promise<Program> {
    const pod = `${this.site.name}-${program}-${this.#added[program]++}`
    const { bundles } = options
    const added = await Program.prepare({ program, pod, ip: this.site.ip, folder: this.site.folder, env, ...(bundles ? { bundles } : {}) })
    to.push(added)
    if (options.start !== false) await added.start()
    return added
  }

  /** Writes the gateway Service's EndpointSlice as the endpoint controller would. @param pods names; default: every gateway of the stack */
  async publishGateways(pods: readonly string[] = this.gateways.map((gateway) => gateway.spec.pod)): Promise<void> {
    const endpoints = pods.map((name, i) => ({
      addresses: [`10.250.7.${11 + i}`],
      conditions: { ready: true, serving: true, terminating: false },
      targetRef: { kind: 'Pod', namespace: this.operatorNamespace, name },
    }))
    await this.#service(this.operatorNamespace, GATEWAY_SERVICE, 8080, endpoints)
  }

  /** Makes a Service without selector in a user namespace, with the addresses of one port behind it. */
  async exposeService(
    name: string,
    port: number,
    options: { readonly namespace?: string; readonly addresses?: readonly string[] } = {},
  ): Promise<void> {
    const addresses = options.addresses ?? [this.site.ip]
    const endpoints = addresses.map((address) => ({ addresses: [address], conditions: { ready: true } }))
    await this.#service(options.namespace ?? this.namespace, name, port, endpoints)
  }

  async #service(namespace: string, name: string, port: number, endpoints: readonly unknown[]): Promise<void> {
    const ports = [{ name: 'http', port, protocol: 'TCP' }]
    await this.kube.apply({ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec: { ports, clusterIP: 'None' } })
    await this.kube.apply({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: `${name}-test`,
        namespace,
        labels: { 'kubernetes.io/service-name': name, 'endpointslice.kubernetes.io/managed-by': 'test' },
      },
      addressType: 'IPv4',
      endpoints,
      ports,
    })
  }

  /**
   * Makes a ServedModel that the shared llama-server answers, natively in both dialects, and waits until it is Ready.
   * @param spec replaces fields of the default one
   */
  async serveModel(name: string, spec: Readonly<Record<string, unknown>> = {}, namespace = this.namespace): Promise<TestObject> {
    await this.exposeService('llama', this.site.modelServer.port, { namespace })
    const backend = {
      name: 'llama',
      service: { name: 'llama', port: this.site.modelServer.port },
      upstreamModel: 'tiny',
      messages: 'Native',
    }
    await this.apply('ServedModel', name, { backends: [backend], ...spec }, namespace)
    return this.untilCondition('ServedModel', name, 'Ready', { namespace })
  }

  /** Applies an object of ours; an ApiKey and a Plan are for all models unless `spec` says otherwise. */
  async apply(kind: OwnKind, name: string, spec: object = {}, namespace = this.namespace): Promise<TestObject> {
    const defaults = kind === 'ApiKey' || kind === 'Plan' ? { models: ['*'] } : {}
    const metadata = CLUSTER_SCOPED.has(kind) ? { name } : { name, namespace }
    return this.kube.apply({ apiVersion: GROUP, kind, metadata, spec: { ...defaults, ...spec } })
  }

  async setState(name: string, state: 'Active' | 'Suspended' | 'Revoked', namespace = this.namespace): Promise<TestObject> {
    return this.kube.merge(this.path('ApiKey', name, namespace), { spec: { state } })
  }

  async deleteKey(name: string, namespace = this.namespace): Promise<void> {
    const path = this.path('ApiKey', name, namespace)
    await this.kube.remove(path)
    await waitFor(`${name} to be deleted`, async () => (await this.kube.get(path)) === undefined)
  }

  /** Applies an ApiKey (for all models unless `spec` says otherwise), waits until it is Ready and reads its Secret. @returns the credential */
  async issueKey(name: string, spec: Readonly<Record<string, unknown>> = {}, namespace = this.namespace): Promise<string> {
    await this.apply('ApiKey', name, spec, namespace)
    await this.untilCondition('ApiKey', name, 'Ready', { namespace })
    return this.value(name, namespace)
  }

  /** The value of a key in its Secret; rejects when there is none. */
  async value(name: string, namespace = this.namespace): Promise<string> {
    return (await this.secret(name, namespace))['SERVICE_API_KEY'] ?? ''
  }

  /** Every value that a user Secret of the first namespace ever holds, by Secret name, until `signal` aborts. */
  values(signal: AbortSignal): ReadonlyMap<string, ReadonlySet<string>> {
    const values = new Map<string, Set<string>>()
    void this.kube.watch(objectPath('v1', 'Secret', this.namespace), signal, ({ object: { metadata, data } }) => {
      const text = (data as Record<string, string> | undefined)?.['SERVICE_API_KEY']
      if (text === undefined) return
      values.set(metadata.name, (values.get(metadata.name) ?? new Set()).add(Buffer.from(text, 'base64').toString()))
    })
    return values
  }

  /** The operator that holds the Lease; '' if none does. */
  async holder(): Promise<string> {
    const lease = await this.kube.get(objectPath('coordination.k8s.io/v1', 'Lease', this.operatorNamespace, 'headgate-operator'))
    return (lease?.spec as { holderIdentity?: string } | undefined)?.holderIdentity ?? ''
  }

  /** The decoded data of a Secret; rejects when there is none. */
  async secret(name: string, namespace = this.namespace): Promise<Record<string, string>> {
    const secret = await this.kube.get(objectPath('v1', 'Secret', namespace, name))
    if (!secret) throw new Error(`no Secret ${namespace}/${name}`)
    const data = Object.entries((secret.data ?? {}) as Record<string, string>)
    return Object.fromEntries(data.map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]))
  }

  path(kind: OwnKind, name: string, namespace = this.namespace): string {
    return objectPath(GROUP, kind, CLUSTER_SCOPED.has(kind) ? '' : namespace, name)
  }

  list(kind: OwnKind, namespace = this.namespace): Promise<TestObject[]> {
    return this.kube.list(objectPath(GROUP, kind, namespace))
  }

  /** Waits until a condition of the present generation is True, or what `expected` says. @returns the object as it was then */
  async untilCondition(kind: OwnKind, name: string, type: string, expected: Expected = {}): Promise<TestObject> {
    const { namespace = this.namespace, status = 'True', reason, deadlineMs = 90_000 } = expected
    let seen: unknown
    const probe = async () => {
      const object = await this.kube.get(this.path(kind, name, namespace))
      const condition = conditionOf(object, type)
      seen = conditionsOf(object)
      return condition?.status === status && (reason ?? condition.reason) === condition.reason ? object : undefined
    }
    return waitFor(`${kind} ${namespace}/${name} to have ${type}=${status}`, probe, { deadlineMs }).catch((error: unknown) => {
      throw new Error(`${String(error)}; the conditions were ${JSON.stringify(seen)}`, { cause: error })
    })
  }

  /** Stops one program for good and removes its pod from this stack. */
  async remove(program: Program): Promise<void> {
    for (const list of [this.operators, this.gateways]) if (list.includes(program)) list.splice(list.indexOf(program), 1)
    await program.stop()
  }

  /** Keeps what Redis and the metrics hold for the search for secrets, and stops everything of this stack. */
  async close(): Promise<void> {
    await Promise.all([...this.operators, ...this.gateways].map((program) => program.stop()))
    this.mirror.stop()
    if (this.redis.process.running) keepRedisDump(this.site.folder, `${this.site.name}-redis`, await this.redis.dump())
    await this.redis.stop()
  }
}

function first(programs: readonly Program[], what: string): Program {
  const [program] = programs
  if (!program) throw new Error(`this stack has no ${what}`)
  return program
}
