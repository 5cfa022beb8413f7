/** Splits long work into turns of the event loop, so that calls are served between them. */
import { breathe } from '#platform/clock.ts'
import type { KubePort } from '#kube/port.ts'

/** Length of a turn, ms. */
const TURN_MS = 10

/**
 * Resolves within the turn, else in a later one, in the order of the calls. Even within the turn each waits for the one before: many that
 * ask at once would all be admitted before the first of them has worked.
 */
export type Turns = () => Promise<void>

/** The turns of all work that shares the result: together they take one turn at a time. */
export function makeTurns(): Turns {
  let endMs = performance.now() + TURN_MS
  let last = Promise.resolve()
  const begin = async (): Promise<void> => {
    if (performance.now() < endMs) return
    await breathe()
    endMs = performance.now() + TURN_MS
  }
  return () => (last = last.then(begin))
}

/**
 * The KubePort of the operator. A call to an API server ends in a later turn of the event loop, a call to the ObjectStore in the same one:
 * thousands of keys would be reconciled in one turn, and no call would be served meanwhile.
 */
export function inTurns(kube: KubePort, turns: Turns): KubePort {
  return new Proxy(kube, {
    get:
      (target, name: keyof KubePort) =>
      async (...args: readonly unknown[]): Promise<unknown> => {
        await turns()
        return Reflect.apply(target[name], target, args) as unknown
      },
  })
}
