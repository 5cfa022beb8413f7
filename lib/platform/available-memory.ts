import { totalmem } from 'node:os'
import { constrainedMemory } from 'node:process'

/** Reads how many bytes of memory this process may use: the limit of its cgroup, else the memory of the machine. */
export function availableMemory(): number {
  const constrained = constrainedMemory()
  return constrained > 0 && constrained < totalmem() ? constrained : totalmem()
}
