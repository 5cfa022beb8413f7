/** Chromium on the network of the node. It finds the Services of the namespace `front` by their names, and it trusts one certificate. */
import { createHash, X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TestBrowser } from '../support/browser.ts'
import { type Cluster, NODE } from './cluster.ts'

export interface ClusterBrowserOptions {
  /** For the program that starts Chromium. */
  readonly folder: string
  /** Addresses by host name; `*` stands for any text. */
  readonly hosts: Readonly<Record<string, string>>
  /** PEM. Each other certificate is checked as usual. */
  readonly certificate: string
}

export async function startClusterBrowser(cluster: Cluster, { folder, hosts, certificate }: ClusterBrowserOptions): Promise<TestBrowser> {
  const program = join(folder, 'chromium-of-the-node')
  writeFileSync(program, `#!/bin/sh\nexec bash '${NODE}' exec chromium "$@"\n`, { mode: 0o755 })
  const rules = Object.entries({ ...(await servicesOf(cluster, 'front')), ...hosts }).map(([host, address]) => `MAP ${host} ${address}`)
  const key = createHash('sha256').update(new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' }))
  return await TestBrowser.start({
    program,
    args: [`--host-resolver-rules=${rules.join(', ')}`, `--ignore-certificate-errors-spki-list=${key.digest('base64')}`],
  })
}

async function servicesOf(cluster: Cluster, namespace: string): Promise<Readonly<Record<string, string>>> {
  const list = JSON.parse(await cluster.kubectl('-n', namespace, 'get', 'services', '-o', 'json')) as {
    items: readonly { metadata: { name: string }; spec: { clusterIP: string } }[]
  }
  return Object.fromEntries(list.items.map(({ metadata, spec }) => [`${metadata.name}.${namespace}.svc`, spec.clusterIP]))
}
