import { totalmem } from 'node:os'
import { constrainedMemory } from 'node:process'

/** Bytes that this process may use: those of its cgroup, else of the machine. */
export function availableMemory(): number {
  const constrained = constrainedMemory()
  return constrained > 0 && constrained < totalmem() ? constrained : totalmem()
}
