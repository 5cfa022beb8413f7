/** Builds the request to one server, in one place: path, headers and bytes. */
import { bytesFor, type RequestBody } from '../dialects/request-body.ts'
import { BodyStream } from './body-stream.ts'
import type { ForwardJob } from './forward-job.ts'
import type { Target } from './model-table.ts'
import { saltOf } from './prompt-cache.ts'
import type { TranslatedAttempt } from './translated-call.ts'
import { type HeaderSource, upstreamHeaders } from './upstream-headers.ts'

/** Larger bodies, bytes, are sent as a stream: the HTTP client keeps a buffer until the answer ends, which may take minutes. */
const STREAMED_BYTES = 65_536

interface CallOptions extends Pick<HeaderSource, 'forwarded' | 'credential'> {
  readonly translated?: TranslatedAttempt | undefined
}

/** @param original the body of the job, which the job still has */
export function backendCall(job: ForwardJob, original: RequestBody, target: Target, { forwarded, credential, translated }: CallOptions) {
  const { upstreamModel, streamUsage, headers: own } = target.backend
  const { body, path, isAnthropic, showsUsage } = formatFor(job, original, target, translated)
  const asksUsage = showsUsage && streamUsage === 'Inject'
  const bytes = bytesFor(body, upstreamModel, { asksUsage, salt: saltOf(job, translated?.translator.to) })
  const { request, requestId } = job.exchange
  const headers = upstreamHeaders({
    sent: request.headers,
    ...{ forwarded, ofModel: job.model.forwardHeaders },
    ...{ isAnthropic, requestId, credential, own, contentType: body.contentType },
  })
  const stream = bytes.length > STREAMED_BYTES ? new BodyStream(bytes) : undefined
  if (stream) headers.push('content-length', String(bytes.length))
  return {
    path: target.prefix + path,
    headers,
    body: stream ?? bytes,
    stream,
    isRenamed: upstreamModel !== job.askedName,
    addsUsage: asksUsage && body.usageEdit !== undefined,
  }
}

/** The parts of a request that depend on the format of the server. A translated stream ends with its usage, so the usage is asked for. */
function formatFor(job: ForwardJob, original: RequestBody, { backend }: Target, translated: TranslatedAttempt | undefined) {
  const { dialect, isMetered, translations } = job
  if (translated === undefined)
    return { body: original, path: dialect.path, isAnthropic: dialect.isAnthropic, showsUsage: isMetered !== false }
  const body = translations?.get(backend.engine)?.body
  if (body === undefined) throw new TypeError('a translated attempt whose body was dropped')
  return { body, path: `/v1/${translated.translator.to}`, isAnthropic: false, showsUsage: true }
}
