/** A real Kubernetes API (etcd, kube-apiserver, kube-controller-manager) whose processes a test can stop or kill; runs `test/parts/control-plane.sh`. */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePorts } from './free-port.ts'
import { KubeAdmin, type TestObject } from './kube-admin.ts'
import { eventually, waitFor } from './wait-for.ts'

const SCRIPT = join(import.meta.dirname, '../parts/control-plane.sh')
const CRDS = join(import.meta.dirname, '../../crds')
const run = promisify(execFile)
/** Largest output of kubectl, bytes: enough for every object of a whole run. */
const MAX_OUTPUT = 512 * 1024 * 1024

export type ControlPlanePart = 'etcd' | 'kube-apiserver' | 'kube-controller-manager'

export interface ControlPlaneAddress {
  /** Address of the bridge that all parts share. */
  readonly ip: string
  readonly folder: string
  readonly port: number
  readonly etcdPort: number
  readonly etcdPeerPort: number
  /** false: no audit log, which would cost a measurement time. */
  readonly audit?: boolean
}

export class ControlPlane {
  readonly address: ControlPlaneAddress
  readonly server: string
  #admin: KubeAdmin | undefined

  constructor(address: ControlPlaneAddress) {
    this.address = address
    this.server = `https://${address.ip}:${address.port}`
  }

  static async start(folder: string, ip: string, { audit = true } = {}): Promise<ControlPlane> {
    const [port = 0, etcdPort = 0, etcdPeerPort = 0] = await freePorts(3)
    const plane = new ControlPlane({ ip, folder, port, etcdPort, etcdPeerPort, audit })
    await plane.#script('up')
    await plane.applyCrds()
    return plane
  }

  get admin(): KubeAdmin {
    this.#admin ??= new KubeAdmin(this.server, this.address.folder)
    return this.#admin
  }

  get adminKubeconfig(): string {
    return join(this.address.folder, 'admin.kubeconfig')
  }

  /** `kubectl` as administrator. @returns its output; rejects with its stderr in the message */
  async kubectl(...args: string[]): Promise<string> {
    const { stdout } = await run(join(binFolder(), 'kubectl'), ['--kubeconfig', this.adminKubeconfig, ...args], { maxBuffer: MAX_OUTPUT })
    return stdout
  }

  /** Applies crds/ and waits until the API server serves every kind in it. */
  async applyCrds(): Promise<void> {
    await this.kubectl('apply', '--server-side', '-f', CRDS)
    await this.untilEstablished(CRDS)
  }

  /** Waits until the API server serves the kinds of a file or folder. `kubectl wait` fails at once on a new definition, which has no conditions yet. */
  async untilEstablished(path: string): Promise<void> {
    const wait = (): Promise<string> => this.kubectl('wait', '--for=condition=Established', '--timeout=5s', '-f', path)
    await eventually(async () => void (await wait()))
  }

  async namespace(name: string, labels: Readonly<Record<string, string>> = {}): Promise<TestObject> {
    return this.admin.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
  }

  /**
   * Writes a kubeconfig that acts as a ServiceAccount, with a token of its own (TokenRequest, one hour).
   * @param server an address other than the API server's own, for example that of a proxy
   */
  async kubeconfigFor(namespace: string, account: string, file: string, server = this.server): Promise<void> {
    const token = await this.#token(namespace, account)
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'lab',
      clusters: [{ name: 'lab', cluster: { server, 'certificate-authority': join(this.address.folder, 'pki/ca.crt') } }],
      users: [{ name: 'lab', user: { token } }],
      contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'lab' } }],
    }
    writeFileSync(file, JSON.stringify(config), { mode: 0o600 }) // JSON is YAML
  }

  /** A client that acts as a ServiceAccount; the caller closes the client. */
  async as(namespace: string, account: string): Promise<KubeAdmin> {
    return new KubeAdmin(this.server, this.address.folder, await this.#token(namespace, account))
  }

  async #token(namespace: string, account: string): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } }
    const { status } = await this.admin.call('POST', path, request)
    return (status as { token: string }).token // TokenRequest always answers with one
  }

  /** Sends a signal to one process: SIGKILL, or SIGSTOP and SIGCONT for half-open connections. */
  signal(part: ControlPlanePart, signal: NodeJS.Signals): void {
    process.kill(Number(readFileSync(join(this.address.folder, `${part}.pid`), 'utf8')), signal)
  }

  /** Starts one process again on the same data, waiting until it answers. */
  async restart(part: ControlPlanePart): Promise<void> {
    await waitFor(`${part} to have ended`, async () => (await this.#script('status')).includes(`${part.padEnd(24)} down`))
    await this.#script('start', part)
  }

  async stop(): Promise<void> {
    await this.#admin?.close()
    await this.#script('down')
  }

  async #script(...args: string[]): Promise<string> {
    const { ip, folder, port, etcdPort, etcdPeerPort, audit } = this.address
    const env = {
      ...process.env,
      LAB_BIN: binFolder(),
      LAB_DIR: folder,
      LAB_IP: ip,
      LAB_PORT: String(port),
      LAB_ETCD_PORT: String(etcdPort),
      LAB_ETCD_PEER_PORT: String(etcdPeerPort),
      LAB_AUDIT: audit === false ? '0' : '1',
    }
    return (await run('bash', [SCRIPT, ...args], { env })).stdout
  }
}

/** The folder in which `test/parts/prepare.sh` puts the programs that it builds. */
export function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(process.env.HOME ?? '/root', '.cache'), 'headgate')
}

/** The Kubernetes programs, helm among them. */
export function binFolder(): string {
  return process.env.LAB_BIN ?? join(cacheFolder(), 'kube/v1.36.3/bin')
}
