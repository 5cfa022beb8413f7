/** Builds the request to one server, in one place: path, headers and bytes. */
import { bytesFor, type RequestBody } from '../dialects/request-body.ts'
import { BodyStream } from './body-stream.ts'
import type { ForwardJob } from './forward-job.ts'
import type { Target } from './model-table.ts'
import { type HeaderSource, upstreamHeaders } from './upstream-headers.ts'

/** Larger bodies, bytes, are sent as a stream: the HTTP client keeps a buffer until the answer ends, which may take minutes. */
const STREAMED_BYTES = 65_536

type CallOptions = Pick<HeaderSource, 'forwarded' | 'credential'>

/** @param body the body of the job, which the job still has */
export function backendCall(job: ForwardJob, body: RequestBody, target: Target, { forwarded, credential }: CallOptions) {
  const { dialect, exchange, askedName } = job
  const { upstreamModel, streamUsage, headers: own } = target.backend
  const asksUsage = job.isMetered !== false && streamUsage === 'Inject'
  const bytes = bytesFor(body, upstreamModel, asksUsage)
  const { request, requestId } = exchange
  const headers = upstreamHeaders({
    sent: request.headers,
    ...{ forwarded, ofModel: job.model.forwardHeaders },
    isAnthropic: dialect.isAnthropic,
    ...{ requestId, credential, own, contentType: body.contentType },
  })
  const stream = bytes.length > STREAMED_BYTES ? new BodyStream(bytes) : undefined
  if (stream) headers.push('content-length', String(bytes.length))
  return {
    path: target.prefix + dialect.path,
    headers,
    body: stream ?? bytes,
    stream,
    isRenamed: upstreamModel !== askedName,
    addsUsage: asksUsage && body.usageEdit !== undefined,
  }
}
