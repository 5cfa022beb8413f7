/** Builds the request to one server, in one place: path, headers and bytes. */
import { bytesFor, type RequestBody } from '../dialects/request-body.ts'
import { BodyStream } from './body-stream.ts'
import type { ForwardJob } from './forward-job.ts'
import type { Target } from './model-table.ts'
import type { TranslatedAttempt } from './translated-call.ts'
import { type HeaderSource, upstreamHeaders } from './upstream-headers.ts'

/** Larger bodies, bytes, are sent as a stream: the HTTP client keeps a buffer until the answer ends, which may take minutes. */
const STREAMED_BYTES = 65_536

interface CallOptions extends Pick<HeaderSource, 'forwarded' | 'credential'> {
  readonly translated?: TranslatedAttempt | undefined
}

/** @param original the body of the job, which the job still has */
export function backendCall(job: ForwardJob, original: RequestBody, target: Target, { forwarded, credential, translated }: CallOptions) {
  const { dialect, exchange, askedName } = job
  const { upstreamModel, streamUsage, headers: own } = target.backend
  const body = (translated && job.translations?.get(target.backend.engine)?.body) ?? original
  const isUsageShown = job.isMetered !== false || translated !== undefined // a translated stream ends with its usage
  const asksUsage = isUsageShown && streamUsage === 'Inject'
  const bytes = bytesFor(body, upstreamModel, asksUsage)
  const { request, requestId } = exchange
  const headers = upstreamHeaders({
    sent: request.headers,
    ...{ forwarded, ofModel: job.model.forwardHeaders },
    isAnthropic: dialect.isAnthropic && translated === undefined,
    ...{ requestId, credential, own, contentType: body.contentType },
  })
  const stream = bytes.length > STREAMED_BYTES ? new BodyStream(bytes) : undefined
  if (stream) headers.push('content-length', String(bytes.length))
  return {
    path: target.prefix + (translated ? `/v1/${translated.translator.to}` : dialect.path),
    headers,
    body: stream ?? bytes,
    stream,
    isRenamed: upstreamModel !== askedName,
    addsUsage: asksUsage && body.usageEdit !== undefined,
  }
}
