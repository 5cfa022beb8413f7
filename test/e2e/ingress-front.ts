/**
 * nginx in the place of an Ingress controller, which no test machine has. Its configuration is made of the Ingress objects of the API server alone:
 * hosts, paths, backends and TLS Secrets. A host without an Ingress is answered by 404. What an Ingress asks for by annotations is not looked at.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster } from './cluster.ts'

interface IngressPath {
  readonly path: string
  readonly pathType: string
  readonly backend: { readonly service: { readonly name: string; readonly port: { readonly name?: string; readonly number?: number } } }
}

interface Ingress {
  readonly metadata: { readonly namespace: string }
  readonly spec: {
    readonly tls?: readonly { readonly secretName: string; readonly hosts: readonly string[] }[]
    readonly rules: readonly { readonly host: string; readonly http: { readonly paths: readonly IngressPath[] } }[]
  }
}

/** A host as nginx serves it. */
interface Site {
  readonly host: string
  /** Address of the Service inside the cluster. */
  readonly backend: string
  readonly certificate: Certificate | undefined
}

interface Certificate {
  /** Of the files `NAME.crt` and `NAME.key`. */
  readonly name: string
  /** Both files, in Base64. */
  readonly files: Readonly<Record<string, string>>
}

const MANIFEST = join(import.meta.dirname, 'manifests/ingress-front.yaml')
/** Name server of the cluster (node.sh). A Service has another address after a new install, so nginx asks at each request. */
const RESOLVER = 'resolver 10.250.0.1 valid=1s'

/** Starts nginx with the Ingress objects as they are now. @returns the address of its Service, on ports 80 and 443 */
export async function startIngressFront(cluster: Cluster): Promise<string> {
  const { items } = await read<{ items: readonly Ingress[] }>(cluster, 'ingresses', '--all-namespaces')
  const sites = (await Promise.all(items.map((ingress) => sitesOf(cluster, ingress)))).flat()
  await cluster.apply(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'ingress-front', namespace: 'front' },
      stringData: { 'nginx.conf': configurationOf(sites) },
      data: Object.assign({}, ...sites.map(({ certificate }) => certificate?.files)) as object,
    }),
  )
  await cluster.apply(readFileSync(MANIFEST, 'utf8'))
  await cluster.kubectl('-n', 'front', 'wait', '--for=condition=Ready', 'pod/ingress-front', '--timeout=60s')
  return await cluster.kubectl('-n', 'front', 'get', 'service', 'ingress-front', '-o', 'jsonpath={.spec.clusterIP}')
}

async function read<T>(cluster: Cluster, ...what: readonly string[]): Promise<T> {
  return JSON.parse(await cluster.kubectl('get', ...what, '-o', 'json')) as T
}

async function sitesOf(cluster: Cluster, { metadata: { namespace }, spec }: Ingress): Promise<readonly Site[]> {
  const site = async ({ host, http: { paths } }: Ingress['spec']['rules'][number]): Promise<Site> => {
    const [path, ...others] = paths
    if (path?.path !== '/' || path.pathType !== 'Prefix' || others.length > 0)
      throw new Error(`${host}: this nginx knows the prefix / alone`)
    const tls = spec.tls?.find(({ hosts }) => hosts.includes(host))
    return {
      host,
      backend: await backendOf(cluster, namespace, path.backend.service),
      certificate: tls && (await certificateOf(cluster, namespace, tls.secretName)),
    }
  }
  return await Promise.all(spec.rules.map(site))
}

async function backendOf(cluster: Cluster, namespace: string, { name, port }: IngressPath['backend']['service']): Promise<string> {
  const service = await read<{ spec: { ports: readonly { name: string; port: number }[] } }>(cluster, '-n', namespace, 'service', name)
  const number = port.number ?? service.spec.ports.find((one) => one.name === port.name)?.port
  if (number === undefined) throw new Error(`service ${namespace}/${name} has no port ${port.name ?? ''}`)
  return `${name}.${namespace}.svc.cluster.local:${number}`
}

async function certificateOf(cluster: Cluster, namespace: string, secret: string): Promise<Certificate> {
  const { data } = await read<{ data: Readonly<Record<string, string>> }>(cluster, '-n', namespace, 'secret', secret)
  const name = `${namespace}.${secret}`
  return { name, files: { [`${name}.crt`]: data['tls.crt'] ?? '', [`${name}.key`]: data['tls.key'] ?? '' } }
}

function configurationOf(sites: readonly Site[]): string {
  return `
    daemon off;
    worker_processes 1;
    pid /tmp/nginx.pid;
    events { worker_connections 256; }
    http {
      access_log /dev/stdout;
      ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((folder) => `${folder}_temp_path /tmp/${folder};`).join('\n      ')}
      ${RESOLVER};
      server {
        listen 8080 default_server;
        location = /front-alive { access_log off; return 204; }
        location / { return 404; }
      }
      ${sites.map((site) => (site.certificate ? secureServer(site, site.certificate) : server('listen 8080;', site))).join('')}
    }`
}

/** Plain requests are sent to https. The first server of the port answers hosts without an Ingress too, by 404. */
function secureServer(site: Site, { name }: Certificate): string {
  const listen = `listen 8443 ssl; ssl_certificate /etc/front/${name}.crt; ssl_certificate_key /etc/front/${name}.key;`
  return `
      server { listen 8080; server_name ${site.host}; return 308 https://$host$request_uri; }
      server { ${listen} server_name ""; return 404; }
      ${server(listen, site)}`
}

function server(listen: string, { host, backend }: Site): string {
  return `
      server {
        ${listen}
        server_name ${host};
        location / {
          set $backend ${backend};
          proxy_pass http://$backend;
          proxy_set_header Host $host;
          proxy_set_header X-Forwarded-For $remote_addr;
          proxy_set_header X-Forwarded-Proto $scheme;
        }
      }`
}
