/** Which server gets a request: backends by weight, endpoints by load. Pure: chance and state are passed in. */
import type { BackendEntry, ModelEntry, Target } from './model-entry.ts'

/** What limits the choice. */
export interface PickRules {
  /** Only backends that speak the Messages API themselves. */
  readonly nativeOnly: boolean
  /** Servers that this request has been sent to already. */
  readonly tried: readonly Target[]
  /** False for a backend that this pod has no token for. */
  readonly isUsable: (backend: BackendEntry) => boolean
  /** At least 0, below 1. */
  readonly random: () => number
}

/**
 * Picks a server.
 * Ejected ones are used only when nothing else is left: an error of theirs is no worse than ours, and they may be back already.
 * @returns undefined when no server is left
 */
export function pickBackend(entry: ModelEntry, rules: PickRules): Target | undefined {
  return pick(entry, rules, isUp) ?? pick(entry, rules, isAny)
}

type Filter = (target: Target) => boolean
const isUp: Filter = (target) => target.health.isUp
const isAny: Filter = () => true

function pick(entry: ModelEntry, rules: PickRules, filter: Filter): Target | undefined {
  const isOpen: Filter = (target) => filter(target) && !rules.tried.includes(target)
  const open = entry.backends.filter((backend) => isEligible(backend, rules) && backend.targets.some(isOpen))
  const backend = byWeight(open, rules.random)
  return backend === undefined ? undefined : leastLoaded(backend.targets, isOpen, rules.random)
}

function isEligible(backend: BackendEntry, { nativeOnly, isUsable }: PickRules): boolean {
  return backend.weight > 0 && (backend.isNative || !nativeOnly) && isUsable(backend)
}

function byWeight(backends: readonly BackendEntry[], random: () => number): BackendEntry | undefined {
  if (backends.length < 2) return backends[0]
  let rest = random() * backends.reduce((sum, backend) => sum + backend.weight, 0)
  return backends.find((backend) => (rest -= backend.weight) < 0) ?? backends.at(-1)
}

/** Begins at a random place, so that equally loaded endpoints share. */
function leastLoaded(targets: readonly Target[], isOpen: Filter, random: () => number): Target | undefined {
  const start = targets.length < 2 ? 0 : Math.floor(random() * targets.length)
  let best: Target | undefined
  for (let i = 0; i < targets.length; i++) {
    const target = targets[(start + i) % targets.length]
    if (target === undefined || !isOpen(target)) continue
    if (best === undefined || target.health.inFlight < best.health.inFlight) best = target
  }
  return best
}
