/** Calls of one account at once, while the gateway that admits the first of them may be killed. */
import { waitFor } from './wait-for.ts'
import type { Program } from './program.ts'
import type { PrepaidStack } from './prepaid-stack.ts'

export interface RaceOptions {
  /** Of the key of each call; all keys belong to `account`. */
  readonly credentials: readonly string[]
  readonly account: string
  readonly maxTokens: number
  /** Whether the gateway that admits the first call is killed at once. */
  readonly isKilled: boolean
}

export interface Race {
  /** Number of calls by status; `lost` for calls that ended with their gateway. */
  readonly counts: Readonly<Record<string, number>>
  readonly killed: Program | undefined
}

/**
 * The answers of the model server wait until every call is decided, since a late call would find the room of an early one. A call that has not
 * reached the model server when its gateway is killed is sent to another one, as clients do; so is a call that gets 503. What the model server
 * reports to the killed gateway counts as unmeasured.
 */
export async function race(prepaid: PrepaidStack, { credentials, account, maxTokens, isKilled }: RaceOptions): Promise<Race> {
  const { gateways, model } = prepaid
  const prefix = `${account}/race-${model.bySession.size}/`
  const passed = new Set<string>()
  const counts: Record<string, number> = {}
  const arrived = (): string[] => [...model.bySession.keys()].filter((session) => session.startsWith(prefix))
  const refused = (): number => Object.entries(counts).reduce((sum, [status, count]) => (status.startsWith('4') ? sum + count : sum), 0)
  const call = async (credential: string, at: number): Promise<string> => {
    for (let turn = 0; ; turn += 1) {
      const gateway = gateways[(at + turn) % gateways.length] ?? prepaid.stack.gateway
      const session = `${prefix}${gateway.spec.pod}/${at}/${turn}`
      const status = await prepaid.call(gateway, credential, { maxTokens, session }).then(
        (answer) => answer.status,
        () => undefined,
      )
      if (status === undefined && model.bySession.has(session)) return 'lost'
      if (status === 200) passed.add(session)
      if (status !== undefined && status !== 503) return String(status)
    }
  }
  const counted = async (credential: string, at: number): Promise<void> => {
    const outcome = await call(credential, at)
    counts[outcome] = (counts[outcome] ?? 0) + 1
  }
  model.hold()
  const calls = Promise.all(credentials.map(counted))
  try {
    const killed = isKilled ? await killFirst(prepaid, prefix, arrived) : undefined
    await waitFor('all calls to be decided', () => refused() + arrived().length >= credentials.length)
    model.release()
    await calls
    for (const session of arrived()) if (!passed.has(session)) prepaid.unmeasured.add(session)
    return { counts, killed }
  } finally {
    model.release()
  }
}

async function killFirst({ gateways, stack }: PrepaidStack, prefix: string, arrived: () => readonly string[]): Promise<Program> {
  const first = await waitFor('a call to reach the model server', () => arrived()[0], { everyMs: 1 })
  const killed = gateways.find(({ spec }) => first.startsWith(`${prefix}${spec.pod}/`)) ?? stack.gateway
  await killed.kill()
  return killed
}
