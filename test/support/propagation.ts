/** Makes every kind of change of keys, one by one and at once, and waits until every gateway answers as expected. */
import { objectPath } from './kube-admin.ts'
import type { Stack } from './stack.ts'
import { waitFor } from './wait-for.ts'

/** One kind of change: the time from the API server's answer until every gateway answered as expected, ms, by key. */
export interface PropagationRow {
  readonly change: string
  readonly times: readonly number[]
}

interface AppliedKey {
  readonly name: string
  readonly credential: string
  readonly ms: number
}

/** Runs all changes: `oneByOne` keys in sequence, then `atOnce` keys together. @param prefix of their names, for another run on the same stack */
export async function measurePropagation(stack: Stack, oneByOne: number, atOnce: number, prefix = ''): Promise<PropagationRow[]> {
  const names = (kind: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${prefix}${kind}-${i}`)
  return [...(await serialKeys(stack, names('serial', oneByOne))), ...(await burstKeys(stack, names('burst', atOnce)))]
}

async function serialKeys(stack: Stack, names: readonly string[]): Promise<PropagationRow[]> {
  const rows = { apply: [] as number[], suspend: [] as number[], resume: [] as number[], revoke: [] as number[], delete: [] as number[] }
  for (const [i, name] of names.entries()) {
    const { credential, ms } = await applied(stack, name)
    rows.apply.push(ms)
    rows.suspend.push(await changed(stack, credential, () => setState(stack, name, 'Suspended'), 401))
    rows.resume.push(await changed(stack, credential, () => setState(stack, name, 'Active'), 200))
    if (i % 2 === 0) rows.revoke.push(await changed(stack, credential, () => setState(stack, name, 'Revoked'), 401))
    else rows.delete.push(await changed(stack, credential, () => stack.kube.remove(stack.path('ApiKey', name)), 401))
  }
  return Object.entries(rows).map(([change, times]) => ({ change: `${change}, one by one`, times }))
}

async function burstKeys(stack: Stack, names: readonly string[]): Promise<PropagationRow[]> {
  const made = await Promise.all(names.map((name) => applied(stack, name)))
  const half = Math.floor(names.length / 2)
  type Change = (name: string) => Promise<unknown>
  const together = async (label: string, keys: readonly AppliedKey[], change: Change, expected: number): Promise<PropagationRow> => {
    await untilDescribed(stack)
    const times = await Promise.all(keys.map(({ name, credential }) => changed(stack, credential, () => change(name), expected)))
    return { change: `${label}, ${keys.length} at once`, times }
  }
  return [
    { change: `apply, ${names.length} at once`, times: made.map(({ ms }) => ms) },
    await together('suspend', made, (name) => setState(stack, name, 'Suspended'), 401),
    await together('resume', made, (name) => setState(stack, name, 'Active'), 200),
    await together('revoke', made.slice(0, half), (name) => setState(stack, name, 'Revoked'), 401),
    await together('delete', made.slice(half), (name) => stack.kube.remove(stack.path('ApiKey', name)), 401),
  ]
}

/** Waits until every status describes the present generation, so that no storm begins before the previous one is over. */
async function untilDescribed(stack: Stack): Promise<void> {
  const areDescribed = async (): Promise<boolean> => {
    const keys = await stack.kube.list(objectPath('headgate.dev/v1alpha1', 'ApiKey', stack.namespace))
    return keys.every(({ metadata, status }) => status?.['observedGeneration'] === metadata.generation)
  }
  await waitFor('every status to be written', areDescribed, { everyMs: 250 })
}

async function applied(stack: Stack, name: string): Promise<AppliedKey> {
  const metadata = { namespace: stack.namespace, name }
  await stack.kube.apply({ apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata, spec: { models: ['*'] } })
  const started = performance.now()
  const read = async (): Promise<string | undefined> => {
    const secret = await stack.kube.get(objectPath('v1', 'Secret', stack.namespace, name))
    return (secret?.data as Record<string, string> | undefined)?.['SERVICE_API_KEY']
  }
  const credential = Buffer.from(await waitFor(`the Secret of ${name}`, read), 'base64').toString()
  await untilAnswered(stack, credential, 200)
  return { name, credential, ms: performance.now() - started }
}

async function changed(stack: Stack, credential: string, change: () => Promise<unknown>, expected: number): Promise<number> {
  await change()
  const started = performance.now()
  await untilAnswered(stack, credential, expected)
  return performance.now() - started
}

function setState(stack: Stack, name: string, state: string): Promise<unknown> {
  return stack.kube.merge(stack.path('ApiKey', name), { spec: { state } })
}

/** Resolves when every gateway answers a request with this credential with `expected`. */
async function untilAnswered(stack: Stack, credential: string, expected: number): Promise<void> {
  const isAnswered = async (url: string): Promise<boolean> => {
    const answer = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${credential}` } })
    await answer.body?.cancel()
    return answer.status === expected
  }
  const waits = stack.gateways.map(({ url }) => waitFor(`${url} to answer ${expected}`, () => isAnswered(url), { deadlineMs: 60_000 }))
  await Promise.all(waits)
}
