/** What is sent to one server, decided once and in one place: path, headers and bytes. */
import { Readable } from 'node:stream'
import { bytesFor, type RequestBody } from '../dialects/request-body.ts'
import type { ForwardJob } from './forward-job.ts'
import type { Target } from './model-entry.ts'
import { upstreamHeaders } from './upstream-headers.ts'

/** Larger bodies are sent as a stream: the HTTP client keeps a buffer until the answer ends, which may take minutes. */
const STREAMED_BYTES = 65_536

/** One request to one server. */
export interface BackendCall {
  readonly path: string
  readonly headers: string[]
  readonly body: Buffer | Readable
  /** Answers name the model otherwise than the client does. */
  readonly isRenamed: boolean
  /** The server is asked for the usage of its stream, which the client has not asked for. */
  readonly addsUsage: boolean
}

/** What a call needs besides job and target. */
export interface CallOptions {
  /** Request headers that may pass. */
  readonly forwarded: ReadonlySet<string>
  /** Of the backend, undefined when it wants none. */
  readonly credential: string | undefined
}

/** @param body that of the job, which still has it */
export function backendCall(job: ForwardJob, body: RequestBody, target: Target, { forwarded, credential }: CallOptions): BackendCall {
  const { dialect, exchange, askedName } = job
  const { upstreamModel, isNative, streamUsage } = target.backend
  const asksUsage = job.isMetered !== false && streamUsage === 'Inject'
  const bytes = bytesFor(body, { upstreamModel, asksUsage })
  const { request, requestId } = exchange
  const headers = upstreamHeaders({ sent: request.headers, forwarded, isNative: dialect.needsNative && isNative, requestId, credential })
  const isStreamed = bytes.length > STREAMED_BYTES
  if (isStreamed) headers.push('content-length', String(bytes.length))
  return {
    path: target.prefix + dialect.path,
    headers,
    body: isStreamed ? Readable.from([bytes]) : bytes,
    isRenamed: upstreamModel !== askedName,
    addsUsage: asksUsage && body.usageEdit !== undefined,
  }
}
