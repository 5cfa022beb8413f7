/** Asks gateways about a credential without a model call: `GET /v1/models` needs only authentication. */
import { setTimeout as sleep } from 'node:timers/promises'
import { callHeaders } from './ask.ts'
import type { Program } from './program.ts'

/** Only catches hangs, ms. */
const ANSWER_WITHIN_MS = 30_000
const POLL_MS = 5
/** Credentials that one gateway is asked about at once. */
const AT_ONCE = 16

/** The status of one gateway's answer; 0 without an answer. */
export async function answerOf(gateway: Pick<Program, 'url'>, credential: string): Promise<number> {
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
  try {
    const answer = await fetch(`${gateway.url}/v1/models`, { headers: callHeaders(credential), signal })
    await answer.body?.cancel()
    return answer.status
  } catch {
    return 0
  }
}

/** Waits until every gateway answers `status`, asking each every few ms. @throws after `deadlineMs`, with the answers seen last */
export async function untilEveryGateway(
  gateways: readonly Program[],
  credential: string,
  status: number,
  deadlineMs = 60_000,
): Promise<void> {
  const started = performance.now()
  const one = async (gateway: Program): Promise<void> => {
    for (;;) {
      const answer = await answerOf(gateway, credential)
      if (answer === status) return
      if (performance.now() - started > deadlineMs)
        throw new Error(`${gateway.spec.pod} answers ${answer} instead of ${status} after ${deadlineMs} ms`)
      await sleep(POLL_MS)
    }
  }
  await Promise.all(gateways.map(one))
}

/** Asks every gateway about every credential once. @returns `pod name: status` of each answer that differs */
export async function differences(
  gateways: readonly Program[],
  credentials: ReadonlyMap<string, string>,
  status: number,
): Promise<string[]> {
  const found: string[] = []
  const questions = gateways.flatMap((gateway) => [...credentials].map(([name, credential]) => ({ gateway, name, credential })))
  const worker = async (): Promise<void> => {
    for (let question = questions.pop(); question; question = questions.pop()) {
      const answer = await answerOf(question.gateway, question.credential)
      if (answer !== status) found.push(`${question.gateway.spec.pod} ${question.name}: ${answer}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return found.toSorted()
}
