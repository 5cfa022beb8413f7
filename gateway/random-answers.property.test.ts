import { expect, test } from 'vitest'
import { MemoryProjection } from '../standalone/memory-projection.ts'
import { takeFaults } from '../test/support/checked-streams.ts'
import { checkOneEnd, isMessageStream } from '../test/support/message-grammar.ts'
import { randomAnswer, SMUGGLED } from '../test/support/random-answers.ts'
import { RandomBackend } from '../test/support/random-backend.ts'
import { randomCall, RandomClients, type SeenAnswer } from '../test/support/random-clients.ts'
import { backendRecord, issuedKey, modelText, recordText, writer } from '../test/support/records.ts'
import { runningGateway } from '../test/support/running-gateway.ts'
import { SeededRandom } from '../test/support/seeded-random.ts'
import { eventually } from '../test/support/wait-for.ts'

/** `RANDOM_ANSWERS_SEED=7 make property` repeats a run. */
const SEED = Number(process.env['RANDOM_ANSWERS_SEED'] ?? Date.now() % 2 ** 31)
const CALLS = Number(process.env['RANDOM_ANSWERS'] ?? 20_000)
const AT_ONCE = 32
/** Backends, each at an address of its own: a few that are ejected leave enough to call. */
const MODELS = 250
const { credential, record } = issuedKey('a')

test(`${CALLS} random answers to random clients leave a gateway that serves, and no client gets the answer of another`, async () => {
  process.stdout.write(`random answers: seed ${SEED}, ${CALLS} calls\n`)
  const backend = new RandomBackend((body) => {
    const mark = /mark-\d+-/.exec(body)?.[0] ?? 'none'
    const random = new SeededRandom(SEED + Number(/\d+/.exec(mark)?.[0] ?? 0))
    return randomAnswer(random, { mark, isStream: body.includes('"stream":true') })
  })
  const port = await backend.listen()
  const { gateway, url, stop } = await runningGateway(await projection(port))
  await gateway.start()
  await eventually(() => expect(gateway.health.isReady()).toBe(true))
  const clients = new RandomClients(url, credential)

  const wrong: string[] = []
  const counts = new Map<string, number>()
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < CALLS) {
      const index = next++
      const mark = `mark-${index}-`
      const call = randomCall(new SeededRandom(SEED - index), `m${index % MODELS}`, mark)
      const seen = await clients.call(call)
      const what = seen.end === 'whole' ? String(seen.status) : seen.end
      counts.set(what, (counts.get(what) ?? 0) + 1)
      const why = mistakeIn(seen, mark) ?? wrongEnd(call.path, seen)
      if (why !== undefined) wrong.push(`${why}: ${mark} ${call.path} ${call.manner} ${seen.status} ${seen.text.slice(0, 200)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))

  takeFaults() // the servers send nonsense, which a gateway passes: `wrongEnd` has checked the ends
  process.stdout.write(`random answers: ${backend.received} requests reached a backend; ${JSON.stringify(Object.fromEntries(counts))}\n`)
  expect(wrong.slice(0, 10)).toEqual([])
  expect(backend.odd.slice(0, 10)).toEqual([])
  expect(backend.received).toBeGreaterThan(CALLS / 2)
  const metrics = async (): Promise<string> => await gateway.health.metrics.render()
  await eventually(async () => expect(await metrics()).toMatch(/^headgate_requests_in_flight 0$/m))
  expect(await metrics()).not.toContain('internal_error')
  expect((await clients.call({ path: '/v1/messages', body: '{}', manner: 'reads' })).status, 'it still answers').toBe(400)
  clients.close()
  await stop()
  backend.close()
})

async function projection(port: number): Promise<MemoryProjection> {
  const store = new MemoryProjection()
  const models = Array.from({ length: MODELS }, (_, i) => {
    const address = `127.0.${1 + Math.floor(i / 200)}.${1 + (i % 200)}:${port}`
    const backends = [backendRecord({ endpoints: [address], upstreamModel: `m${i}` })]
    const text = modelText(`m${i}`, { backends, timeouts: { firstByteSeconds: 1, idleSeconds: 1, totalSeconds: 5 } })
    return { kind: 'model', op: 'put', id: `m${i}`, text } as const
  })
  await store.rebuild(writer(), 'e1', 1, [{ kind: 'key', op: 'put', id: 'a', text: recordText(record) }, ...models])
  return store
}

/** @returns the errors of an answer that no client may receive */
function mistakeIn(seen: SeenAnswer, mark: string): string | undefined {
  const { text, end, why } = seen
  if (why?.startsWith('HPE_')) return `an answer that is not HTTP (${why})`
  if (text.includes(SMUGGLED)) return 'an answer without a request'
  if ((text.match(/mark-\d+-/g) ?? []).some((word) => word !== mark)) return "another's answer"
  return end === 'whole' ? mistakeInWhole(seen) : undefined
}

function mistakeInWhole({ status, text }: SeenAnswer): string | undefined {
  if (status === 401 || status === 403) return 'a refusal of the key'
  if (status === 500 || text.includes('Internal error')) return 'a bug of the gateway'
  return status >= 400 && !isErrorObject(text) ? 'an error that is not JSON' : undefined
}

/** The servers send nonsense, which a gateway passes. */
function wrongEnd(path: string, { type, text, end }: SeenAnswer): string | undefined {
  if (end !== 'whole' || !isMessageStream(path, type)) return undefined
  try {
    checkOneEnd(text)
    return undefined
  } catch (error) {
    return String(error)
  }
}

function isErrorObject(text: string): boolean {
  try {
    return typeof (JSON.parse(text) as { error?: { message?: unknown } }).error?.message === 'string'
  } catch {
    return false
  }
}
