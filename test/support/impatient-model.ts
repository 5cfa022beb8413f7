/** A model with timeouts of one second: for the first byte, and for silence within an answer. */
import { RedisConnection } from '#platform/redis-connection.ts'
import { RedisProjectionStore } from '../../operator/projection/redis-projection-store.ts'
import { startStubModel } from '../../examples/stub-model/stub-model.ts'
import type { Lab } from './lab.ts'
import type { LimitedAnswers } from './limited-answers.ts'
import { backendRecord, modelText, writer } from './records.ts'
import { redisSettings } from './redis-gateway.ts'
import { waitFor } from './wait-for.ts'

export const IMPATIENT = 'impatient'

const TIMEOUTS = { firstByteSeconds: 1, idleSeconds: 1, totalSeconds: 60 }

/** Starts a stub server, publishes the model, and waits until every gateway knows the model. @returns a function that stops the stub */
export async function serveImpatientModel(lab: Lab, limits: LimitedAnswers): Promise<() => Promise<void>> {
  const { ip } = lab.address
  const server = await startStubModel({ host: ip })
  const backend = backendRecord({ name: 'stub', endpoints: [`${ip}:${server.port}`], upstreamModel: IMPATIENT })
  const revision = await publish(limits, modelText(IMPATIENT, { backends: [backend], timeouts: TIMEOUTS }))
  await waitFor('every pod to know the model', async () => {
    const seen = await Promise.all(limits.gateways.map((gateway) => gateway.metric('headgate_projection_revision')))
    return seen.every((at) => (at ?? 0) >= revision)
  })
  return () => server.close()
}

async function publish(limits: LimitedAnswers, text: string): Promise<number> {
  const connection = new RedisConnection(redisSettings(limits.redis, 'operator'), 'operator', { commandMs: 5_000 })
  try {
    const store = new RedisProjectionStore(connection, 'hg')
    const epoch = (await store.meta())?.epoch ?? ''
    const written = await store.write(writer(), epoch, [{ kind: 'model', op: 'put', id: IMPATIENT, text }], 0)
    if (written.outcome !== 'written') throw new Error(`not written: ${written.outcome}`)
    return written.revisions[0] ?? 0
  } finally {
    connection.close()
  }
}
