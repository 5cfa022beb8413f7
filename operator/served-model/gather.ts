/** Reads the world around one ServedModel. The only reader; decides nothing. */
import { namespaceOf, uidOf } from '../kube/port.ts'
import { hash } from 'node:crypto'
import type { ServedModel } from '../api/served-model.ts'
import { secrets } from '../kube/resources.ts'
import type { ServedModelDeps } from './deps.ts'
import { serviceEndpoints } from './endpoints.ts'
import { upstreamFile } from './decide.ts'
import { lostNames } from './names.ts'
import type { ObservedBackend, ObservedModel, ObservedToken } from './observed.ts'
import { selects } from './selector.ts'

/** Only a Secret with this label (value "true") may be sent upstream: a model author must not be able to send any Secret to a URL of theirs. */
export const UPSTREAM_AUTH_LABEL = 'headgate.dev/upstream-auth'
/** What an HTTP header value can carry, and no control characters. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/

/** What was read; tokens stay apart from what `decide` sees. */
export interface Gathered {
  readonly observed: ObservedModel
  readonly tokens: ReadonlyArray<{ readonly file: string; readonly token: string }>
}

/** @throws KubeError when a Secret cannot be read */
export async function gather(model: ServedModel, deps: ServedModelDeps): Promise<Gathered> {
  const tokens: Array<{ file: string; token: string }> = []
  const backends = await Promise.all(model.spec.backends.map((spec) => gatherBackend(model, spec, tokens, deps)))
  const { selector } = model.spec.allowedNamespaces
  const selected = selector ? [...deps.namespaces.list()].filter((namespace) => selects(selector, namespace.metadata.labels)) : []
  const observed: ObservedModel = {
    model,
    lostNames: lostNames(model, deps.servedModels.list()),
    backends,
    selectedNamespaces: selected.map((namespace) => namespace.metadata.name),
    allowLoopback: deps.allowLoopback,
  }
  return { observed, tokens: tokens.sort((a, b) => (a.file < b.file ? -1 : 1)) }
}

async function gatherBackend(
  model: ServedModel,
  spec: ServedModel['spec']['backends'][number],
  tokens: Array<{ file: string; token: string }>,
  deps: ServedModelDeps,
): Promise<ObservedBackend> {
  const namespace = namespaceOf(model)
  const { service } = spec
  const found =
    service &&
    serviceEndpoints(
      service.name,
      service.port,
      deps.services.get({ namespace, name: service.name }),
      deps.slicesOf(namespace, service.name),
    )
  const token = spec.authSecretRef ? await readToken(namespace, spec.authSecretRef, deps) : undefined
  if (typeof token === 'string') tokens.push({ file: upstreamFile(uidOf(model), spec.name), token })
  return { name: spec.name, service: found, token: observeToken(token), reachable: reachable(`${model.metadata.uid}/${spec.name}`, deps) }
}

function observeToken(token: string | { problem: string } | undefined): ObservedToken {
  if (token === undefined) return { state: 'NotUsed' }
  return typeof token === 'string' ? { state: 'Found', sum: hash('sha256', token, 'hex') } : { state: 'NotFound', ...token }
}

async function readToken(
  namespace: string,
  ref: { name: string; key: string },
  deps: ServedModelDeps,
): Promise<string | { problem: string }> {
  const secret = await deps.kube.get(secrets, { namespace, name: ref.name })
  if (!secret) return { problem: `Secret ${ref.name} does not exist in this namespace` }
  if (secret.metadata.labels?.[UPSTREAM_AUTH_LABEL] !== 'true') {
    return { problem: `Secret ${ref.name} lacks the label ${UPSTREAM_AUTH_LABEL}: "true"; whoever owns the Secret must set it` }
  }
  const value = secret.data?.[ref.key]
  if (value === undefined) return { problem: `Secret ${ref.name} has no data key "${ref.key}"` }
  const token = Buffer.from(value, 'base64').toString('utf8').trim()
  return TOKEN.test(token)
    ? token
    : { problem: `data key "${ref.key}" of Secret ${ref.name} is not a token of one line of printable ASCII` }
}

/** The worst that a live gateway says: one that cannot reach a backend is a problem to show. */
function reachable(id: string, deps: ServedModelDeps): { up: number; total: number } | undefined {
  let worst: { up: number; total: number } | undefined
  for (const { acknowledgement } of deps.acknowledgements.live) {
    const health = acknowledgement?.backends[id]
    if (health && (!worst || health.up / Math.max(1, health.total) < worst.up / Math.max(1, worst.total))) worst = health
  }
  return worst
}
