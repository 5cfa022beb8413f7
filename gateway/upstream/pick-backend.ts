/** Picks the server of a request: backends by weight, endpoints by load. Pure: random numbers and state are passed in. */
import type { BackendEntry, ModelEntry, Target } from './model-table.ts'

export interface PickRules {
  readonly nativeOnly: boolean
  /** Servers that this request was already sent to. */
  readonly tried: readonly Target[]
  /** Whether this pod can use a backend: false if it lacks its credential. */
  isUsable(backend: BackendEntry): boolean
  random(): number
}

/**
 * Picks a server. It allocates nothing, because it runs for every request. Ejected servers are used only if no other is left: an error of
 * theirs is no worse than one of the gateway, and they may work again.
 * @returns undefined if no server is left
 */
export function pickBackend(entry: ModelEntry, rules: PickRules): Target | undefined {
  return pick(entry, rules, true) ?? pick(entry, rules, false)
}

/** @param onlyUp leaves out ejected servers */
function pick({ backends }: ModelEntry, rules: PickRules, onlyUp: boolean): Target | undefined {
  let weights = 0
  let chosen: BackendEntry | undefined
  for (const backend of backends) {
    if (!isOpen(backend, rules, onlyUp)) continue
    weights += backend.weight
    // a later backend replaces the choice with the probability of its share of the weights so far: each is left with its share of all
    if (chosen === undefined || rules.random() * weights >= weights - backend.weight) chosen = backend
  }
  return chosen && leastLoaded(chosen.targets, rules, onlyUp)
}

function isOpen(backend: BackendEntry, rules: PickRules, onlyUp: boolean): boolean {
  if (backend.weight <= 0 || (rules.nativeOnly && !backend.isNative) || !rules.isUsable(backend)) return false
  for (const target of backend.targets) if (isLeft(target, rules, onlyUp)) return true
  return false
}

function isLeft(target: Target, { tried }: PickRules, onlyUp: boolean): boolean {
  return (target.health.isUp || !onlyUp) && !tried.includes(target)
}

/** Starts at a random endpoint, so that equally loaded endpoints share the requests. */
function leastLoaded(targets: readonly Target[], rules: PickRules, onlyUp: boolean): Target | undefined {
  const start = targets.length < 2 ? 0 : Math.floor(rules.random() * targets.length)
  let best: Target | undefined
  for (let i = 0; i < targets.length; i++) {
    const target = targets[(start + i) % targets.length]
    if (target === undefined || !isLeft(target, rules, onlyUp)) continue
    if (best === undefined || target.health.inFlight < best.health.inFlight) best = target
  }
  return best
}
