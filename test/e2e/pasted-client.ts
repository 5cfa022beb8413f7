/** The client pod with what a person has copied from the dashboard: unmodified SDKs that call through the Ingress of the gateway. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { MadeKey } from '../support/key-pages.ts'
import type { Outcome } from './client.ts'
import type { Cluster } from './cluster.ts'

const MANIFEST = join(import.meta.dirname, 'manifests/pasted-client.yaml')

interface Front {
  /** IP address of the Ingress. */
  readonly address: string
  readonly host: string
  /** Certificate of the CA, PEM. */
  readonly ca: string
}

export class PastedClient {
  readonly #cluster: Cluster

  private constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  /** @param env the variables of the text for `.env` */
  static async start(cluster: Cluster, { env }: MadeKey, { address, host, ca }: Front): Promise<PastedClient> {
    const { SERVICE_API_KEY: value = '', SERVICE_BASE_URL: url = '' } = env
    const variables = {
      ...{ OPENAI_API_KEY: value, OPENAI_BASE_URL: url },
      ...{ ANTHROPIC_AUTH_TOKEN: value, ANTHROPIC_BASE_URL: url.replace(/\/v1$/, '') },
    }
    const secrets = Object.entries({ pasted: variables, 'pasted-ca': { 'ca.crt': ca } })
    const items = secrets.map(([name, stringData]) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'demo' },
      stringData,
    }))
    await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
    await cluster.apply(readFileSync(MANIFEST, 'utf8').replace('FRONT', address).replace('HOST]', `${host}]`))
    await cluster.kubectl('-n', 'demo', 'wait', '--for=condition=Ready', 'pod/pasted-client', '--timeout=60s')
    return new PastedClient(cluster)
  }

  /** Makes a call with each SDK, plain and streamed. */
  async ask(model: string): Promise<readonly Outcome[]> {
    const command = ['/usr/local/bin/node', '/app/client.js', 'ask', model]
    return JSON.parse(await this.#cluster.kubectl('-n', 'demo', 'exec', 'pasted-client', '--', ...command)) as Outcome[]
  }
}
