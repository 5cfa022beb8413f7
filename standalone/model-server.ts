/** The model server of the examples: the stub, or a real one that MODEL_URL names. */
import { Misconfigured } from '#platform/lifecycle.ts'
import type { ServedModel } from '#api/served-model.ts'
import type { KubeObject } from '#kube/port.ts'
import { isOfKind } from '#api/kind.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import { startStubModel } from '../examples/stub-model/stub-model.ts'

/** Port in the manifests of the examples. The stub listens on it if the port is free. */
export const STUB_PORT = 8089
const STUB_URL = /^http:\/\/(127\.0\.0\.1|localhost):8089\/?$/
const ANSWER_WITHIN_MS = 5_000

/** The server in use. */
export interface ModelServer {
  /** Base URL in front of `/v1`. */
  readonly url: string
  close(): Promise<void>
}

/**
 * Finds the real server, or starts the stub: on its own port, or on any free one if its own is taken (manifests follow, see below).
 * @throws Misconfigured if MODEL_URL does not answer
 */
export async function openModelServer(modelURL: string | undefined): Promise<ModelServer> {
  if (modelURL === undefined) return startStub()
  try {
    await fetch(modelURL, { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }) // any answer shows that the server runs
  } catch (error) {
    throw new Misconfigured(`MODEL_URL: ${modelURL} does not answer (${reasonOf(error)}); start the model server or unset MODEL_URL`, {
      cause: error,
    })
  }
  return { url: modelURL, close: () => Promise.resolve() }
}

/** Names of the backends that follow the model server: an object without a manifest follows the server of the next run. */
export const MODEL_SERVER_ANNOTATION = 'headgate.dev/model-server'

/** Gives backends with the address of the stub that of the server in use, now and in later runs. Leaves others alone. */
export function withModelServer(object: KubeObject, url: string): KubeObject {
  if (!isOfKind(servedModelKind, object)) return object
  const noted = (object.metadata.annotations?.[MODEL_SERVER_ANNOTATION] ?? '').split(',')
  const following = object.spec.backends.filter((backend) => STUB_URL.test(backend.url ?? '') || noted.includes(backend.name))
  if (following.length === 0) return object
  const annotations = { ...object.metadata.annotations, [MODEL_SERVER_ANNOTATION]: following.map(({ name }) => name).join(',') }
  const backends = object.spec.backends.map((backend) => (following.includes(backend) ? { ...backend, url } : backend))
  return { ...object, metadata: { ...object.metadata, annotations }, spec: { ...object.spec, backends } } as ServedModel
}

async function startStub(): Promise<ModelServer> {
  try {
    return await startStubModel({ port: STUB_PORT })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error
    return startStubModel({ port: 0 })
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error // the message is "fetch failed", and the cause has the reason
  return cause instanceof Error ? cause.message || ('code' in cause ? String(cause.code) : cause.name) : error.message
}
