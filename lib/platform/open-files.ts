import { readFileSync } from 'node:fs'

/** Reads how many files and sockets this process may have open. Infinity where the system does not say it. Node raises the soft limit itself. */
export function openFileLimit(): number {
  try {
    return softLimitIn(readFileSync('/proc/self/limits', 'utf8'))
  } catch {
    return Infinity // no Linux
  }
}

/** @param text of `/proc/<pid>/limits` */
export function softLimitIn(text: string): number {
  const soft = /^Max open files\s+(\d+)/m.exec(text)?.[1]
  return soft === undefined ? Infinity : Number(soft)
}
