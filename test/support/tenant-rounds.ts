/**
 * The rounds of `OtherTenant`, in a thread of its own: in the test's thread, the work of the test would count as time of the product.
 * Answers `{ port }` once its model server listens, then one `RoundDone` per `RoundWanted`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { startStubModel } from '../../examples/stub-model/stub-model.ts'
import { KubeAdmin, objectPath } from './kube-admin.ts'
import { type ChangeTimes, type RoundDone, type RoundWanted, TENANT, TENANT_GROUP, type TenantSite } from './tenant-protocol.ts'

const DEADLINE_MS = 60_000
const POLL_MS = 5

const site = workerData as TenantSite
const kube = new KubeAdmin(site.server, site.planeFolder)
/** Authorization header by the marker in the call's body. */
const seen = new Map<string, string>()
let questions = 0
let answers: string[] = []

/** Waits until a check holds. @returns ms since `started` @throws after a minute */
async function until(what: string, check: () => Promise<boolean>, started = performance.now()): Promise<number> {
  while (!(await check())) {
    if (performance.now() - started > DEADLINE_MS) throw new Error(`${what}: not within ${DEADLINE_MS} ms`)
    await sleep(POLL_MS)
  }
  return performance.now() - started
}

async function run({ round, gateways, caller, changes }: RoundWanted): Promise<ChangeTimes> {
  if (changes === 'first-credential') return { issued: 0, suspended: 0, rotated: await untilSent(credentialOf(0), { gateways, caller }) }
  const name = `others-key-${round}`
  const { value, issued } = await issue(name, gateways)
  await kube.merge(objectPath(TENANT_GROUP, 'ApiKey', site.namespace, name), { spec: { state: 'Suspended' } })
  const suspended = await untilEvery(gateways, value, 401)
  if (changes === 'keys') return { issued, suspended, rotated: 0 }
  await writeCredential(credentialOf(round + 1))
  return { issued, suspended, rotated: await untilSent(credentialOf(round + 1), { gateways, caller }) }
}

const credentialOf = (count: number): string => `others-upstream-credential-${count}`

async function issue(name: string, gateways: RoundWanted['gateways']): Promise<{ value: string; issued: number }> {
  const { namespace } = site
  await kube.apply({ apiVersion: TENANT_GROUP, kind: 'ApiKey', metadata: { name, namespace }, spec: { models: ['*'] } })
  const started = performance.now()
  let value = ''
  await until(`the key ${name} is issued`, async () => {
    const data = (await kube.get(objectPath('v1', 'Secret', namespace, name)))?.data as Record<string, string> | undefined
    value = Buffer.from(data?.['SERVICE_API_KEY'] ?? '', 'base64').toString()
    return value !== ''
  })
  await untilEvery(gateways, value, 200)
  return { value, issued: performance.now() - started }
}

async function writeCredential(value: string): Promise<void> {
  const { namespace } = site
  const token = Buffer.from(value).toString('base64')
  await kube.merge(objectPath('v1', 'Secret', namespace, TENANT.secret), { data: { token } })
  const annotations = { 'headgate.dev/reconcile-at': value } // Secrets cannot be watched: a change of the model has them read again
  await kube.merge(objectPath(TENANT_GROUP, 'ServedModel', namespace, TENANT.model), { metadata: { annotations } })
}

async function untilEvery(gateways: RoundWanted['gateways'], credential: string, status: number): Promise<number> {
  const started = performance.now()
  const answersRight = async ({ url }: { url: string }): Promise<boolean> => {
    const answer = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${credential}` } })
    await answer.body?.cancel()
    return answer.status === status
  }
  await Promise.all(gateways.map((gateway) => until(`${gateway.pod} answers ${status}`, () => answersRight(gateway), started)))
  return performance.now() - started
}

/** Until a call over each gateway carries it. @returns ms */
async function untilSent(credential: string, { gateways, caller }: Pick<RoundWanted, 'gateways' | 'caller'>): Promise<number> {
  const started = performance.now()
  const isSent = async (url: string): Promise<boolean> => (await sentOver(url, caller)) === `Bearer ${credential}`
  await Promise.all(gateways.map(({ url, pod }) => until(`${pod} sends the new Credential`, () => isSent(url), started)))
  return performance.now() - started
}

async function sentOver(url: string, caller: string): Promise<string | undefined> {
  const marker = `marker-${questions++}`
  const body = JSON.stringify({ model: TENANT.model, max_tokens: 1, messages: [{ role: 'user', content: marker }] })
  const headers = { authorization: `Bearer ${caller}`, 'content-type': 'application/json' }
  const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
  answers.push(`${JSON.stringify(Object.fromEntries(answer.headers))}\n${await answer.text()}`)
  const sent = seen.get(marker)
  seen.delete(marker)
  return sent
}

async function done(wanted: RoundWanted): Promise<RoundDone> {
  answers = []
  try {
    return { times: await run(wanted), answers }
  } catch (error) {
    return { why: String(error), answers }
  }
}

const backend = await startStubModel({
  host: site.host,
  onRequest: ({ headers, body }) => {
    const marker = /marker-\d+/.exec(body.toString())?.[0]
    if (marker !== undefined) seen.set(marker, headers.authorization ?? '')
  },
})
parentPort?.on('message', (wanted: RoundWanted) => void done(wanted).then((reply) => parentPort?.postMessage(reply)))
parentPort?.postMessage({ port: backend.port })
