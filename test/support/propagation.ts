/** Makes every kind of change of keys, one by one and at once, and waits until every gateway answers as expected. */
import { numbered } from './at-once.ts'
import { untilEveryGateway } from './gateway-answers.ts'
import type { Stack } from './stack.ts'
import { waitFor } from './wait-for.ts'

/** @param count of the keys that change one after the other, and of those that change together @param prefix of their names */
export async function propagate(stack: Stack, count: number, prefix = ''): Promise<void> {
  for (const [i, name] of numbered(`${prefix}serial`, count).entries()) {
    const key = await applied(stack, name)
    for (const change of ['suspend', 'resume', i % 2 === 0 ? 'revoke' : 'delete'] as const) await key(change)
  }
  const keys = await Promise.all(numbered(`${prefix}burst`, count).map((name) => applied(stack, name)))
  for (const change of ['suspend', 'resume'] as const) await Promise.all(keys.map((key) => key(change)))
  await Promise.all(keys.map((key, i) => key(i % 2 === 0 ? 'revoke' : 'delete')))
}

const CHANGES = {
  suspend: (stack: Stack, name: string): Promise<unknown> => stack.setState(name, 'Suspended'),
  resume: (stack: Stack, name: string): Promise<unknown> => stack.setState(name, 'Active'),
  revoke: (stack: Stack, name: string): Promise<unknown> => stack.setState(name, 'Revoked'),
  delete: (stack: Stack, name: string): Promise<unknown> => stack.kube.remove(stack.path('ApiKey', name)),
}

/** Applies a key, and waits until it works. @returns makes a change, and waits until it has taken effect on every gateway */
async function applied(stack: Stack, name: string): Promise<(change: keyof typeof CHANGES) => Promise<void>> {
  await stack.apply('ApiKey', name)
  const credential = await waitFor(`the value of ${name}`, () => stack.value(name))
  await untilEveryGateway(stack.gateways, credential, 200)
  return async (change) => {
    await CHANGES[change](stack, name)
    await untilEveryGateway(stack.gateways, credential, change === 'resume' ? 200 : 401)
  }
}
