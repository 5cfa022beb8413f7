/** Reaches the operator of a cluster by kubectl: a token for the audience of the usage interface, and a forwarded port. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { Unusable } from '../command-line.ts'
import { contextArgs, runKubectl } from './kubectl.ts'
import type { ClusterAccess } from './operator-answer.ts'

const AUDIENCE = 'headgate-usage'
/** Shortest life that the API server gives a token. */
const LIFE = '10m'
const FORWARD_WITHIN_MS = 20_000

/** @throws Unusable if kubectl fails, with its last line */
export async function reachOperator<T>(
  { namespace, serviceAccount, service, context }: ClusterAccess,
  use: (url: string, token: string) => Promise<T>,
): Promise<T> {
  const common = [...contextArgs(context), '--namespace', namespace]
  const created = await runKubectl([...common, 'create', 'token', serviceAccount, '--audience', AUDIENCE, '--duration', LIFE])
  if (!created.isDone) throw new Unusable(`kubectl create token: ${created.why}`)
  const forward = spawn('kubectl', [...common, 'port-forward', `service/${service}`, ':usage', '--address', '127.0.0.1'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  try {
    return await use(await forwarded(forward), created.output.trim())
  } finally {
    forward.kill()
  }
}

function forwarded(forward: ReturnType<typeof spawn>): Promise<string> {
  let complaint = ''
  forward.stderr?.on('data', (text: Buffer) => (complaint += text.toString()))
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new Unusable(`kubectl port-forward: ${why}`))
    const timer = setTimeout(() => fail('the operator was not reached in time'), FORWARD_WITHIN_MS)
    forward.on('error', (error) => fail(error.message))
    forward.on('close', () => {
      clearTimeout(timer)
      fail(complaint.trim().split('\n').at(-1) ?? 'it ended')
    })
    if (forward.stdout === null) return
    createInterface({ input: forward.stdout }).on('line', (line) => {
      const port = /^Forwarding from 127\.0\.0\.1:(\d+)/.exec(line)?.[1]
      if (port === undefined) return
      clearTimeout(timer)
      resolve(`http://127.0.0.1:${port}`)
    })
  })
}
