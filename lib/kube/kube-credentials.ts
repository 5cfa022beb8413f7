import { readFileSync } from 'node:fs'
import type { RequestOptions } from 'node:https'
import { delimiter, dirname, resolve } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { Misconfigured } from '#platform/lifecycle.ts'
import { parse } from 'yaml'

/** TLS options of the connection, as for `tls.connect`. Their content is compared, to notice a rotated CA or client certificate. */
export interface TlsMaterial {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

/** Address of the API server, and the credentials for it. */
export interface KubeAccess {
  /** Scheme, host, port and perhaps a path; no trailing slash. */
  readonly server: string
  readonly tls: TlsMaterial
  /** Authorization (never logged) and impersonation. */
  readonly headers: Readonly<Record<string, string>>
}

/**
 * The identity of this process for the API server, from a kubeconfig or the ServiceAccount of the pod. Every `read` reads tokens,
 * certificates and CA from their files again, since the kubelet replaces them while the process runs.
 */
export class KubeCredentials {
  readonly #kubeconfig: string | undefined
  #config: KubeConfig

  /**
   * @param kubeconfig value of KUBECONFIG: one path, or several joined as in PATH; undefined = the ServiceAccount of the pod
   * @throws Misconfigured when neither of them exists, or none names an API server
   */
  constructor(kubeconfig: string | undefined) {
    this.#kubeconfig = kubeconfig
    this.#config = load(kubeconfig)
  }

  /** Forgets cached tokens and reads the kubeconfig again: the remedy for a 401 after a rotation. */
  reload(): void {
    this.#config = load(this.#kubeconfig)
  }

  /** @throws Error when a file is missing or a credential plugin fails; its message holds no credential */
  async read(): Promise<KubeAccess> {
    const options: RequestOptions = {}
    try {
      await this.#config.applyToHTTPSOptions(options)
    } catch (error) {
      throw new Error(`credentials for the API server: ${reasonOf(error)}`)
    }
    return { server: serverOf(this.#config), tls: tlsOf(options), headers: headersOf(options) }
  }
}

function load(kubeconfig: string | undefined): KubeConfig {
  const config = new KubeConfig()
  try {
    const files = kubeconfig?.split(delimiter).filter(Boolean)
    if (files?.length) files.forEach((file, index) => loadFile(config, file, index))
    else config.loadFromCluster()
  } catch (error) {
    throw new Misconfigured(`KUBECONFIG ${kubeconfig ?? ''}: ${reasonOf(error)}; name a readable kubeconfig`, { cause: error })
  }
  const server = serverOf(config)
  if (!URL.canParse(server) || server.includes('undefined')) {
    throw new Misconfigured('no API server is configured; set KUBECONFIG, or run in a pod that has a ServiceAccount token')
  }
  if (config.getCurrentCluster()?.proxyUrl) throw new Misconfigured('proxy-url in the kubeconfig is not supported; remove it')
  return config
}

function loadFile(config: KubeConfig, file: string, index: number): void {
  const one = index === 0 ? config : new KubeConfig()
  one.loadFromFile(file)
  useTokenFiles(one, file)
  if (one !== config) config.mergeConfig(one, true)
}

/** client-node reads token files only in pods. This function passes the `tokenFile` of a kubeconfig to the same authenticator. */
function useTokenFiles(config: KubeConfig, file: string): void {
  const text: { users?: ReadonlyArray<{ name?: string; user?: { tokenFile?: string } }> } = parse(readFileSync(file, 'utf8'))
  config.users = config.users.map((known) => {
    const tokenFile = text.users?.find(({ name }) => name === known.name)?.user?.tokenFile
    if (!tokenFile) return known
    return { ...known, authProvider: { name: 'tokenFile', config: { tokenFile: resolve(dirname(file), tokenFile) } } }
  })
}

function serverOf(config: KubeConfig): string {
  return (config.getCurrentCluster()?.server ?? '').replace(/\/+$/, '')
}

function tlsOf(options: RequestOptions): TlsMaterial {
  return {
    ...pem('ca', options.ca),
    ...pem('cert', options.cert),
    ...pem('key', options.key),
    ...(options.servername ? { servername: options.servername } : {}),
    ...(options.rejectUnauthorized === undefined ? {} : { rejectUnauthorized: options.rejectUnauthorized }),
  }
}

/** client-node returns files as bytes and answers of plugins as text. */
function pem(name: 'ca' | 'cert' | 'key', value: unknown): TlsMaterial {
  return typeof value === 'string' || Buffer.isBuffer(value) ? { [name]: value.toString('utf8') } : {}
}

function headersOf(options: RequestOptions): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = String(value).trim() // a token file may end in a newline
  if (options.auth) headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`
  return headers
}

/** The message of a plugin may quote its output, and so a token. Only the kind of failure is kept. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown failure'
  return 'syscall' in error ? error.message : `${error.name} while it was read`
}
