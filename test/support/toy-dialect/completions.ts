/** A dialect that the gateway does not have: OpenAI's older completions. The dialect must need only this folder and one row of the route table. */
import { openaiEvents } from '../../../gateway/dialects/backend-events.ts'
import { openaiFraming } from '../../../gateway/dialects/client-framing.ts'
import { declared } from '../../../gateway/dialects/request-shape.ts'
import type { Dialect } from '../../../gateway/dialects/dialect.ts'
import { GatewayError } from '../../../gateway/errors.ts'
import { inference } from '../../../gateway/routes/inference.ts'
import type { Route } from '../../../gateway/routes/route-table.ts'

export const completions: Dialect = {
  path: '/v1/completions',
  needsNative: false,
  hasUsageOption: true,
  framing: openaiFraming,
  events: openaiEvents,
  readRequest(body) {
    const { model, prompt, stream } = body
    if (typeof model !== 'string') return new GatewayError('invalidField', { field: 'model', reason: 'is required' })
    if (typeof prompt !== 'string') return new GatewayError('invalidField', { field: 'prompt', reason: 'is required' })
    return { model, stream: stream === true, ...declared(body) }
  },
}

/** Row of the dialect in the route table. */
export const completionsRoute: Route = {
  methods: 'POST',
  paths: [completions.path],
  label: completions.path,
  handler: (deps) => inference(completions, deps),
}
