/** A clock that goes wrong for one process, by Debian's libfaketime: the time of day is off, the monotonic clock is not. */
import { globSync } from 'node:fs'

const LIBRARIES = ['/usr/lib/*/faketime/libfaketimeMT.so.1', '/usr/lib/faketime/libfaketimeMT.so.1']

/** Why no process can have another clock here; undefined when one can. */
export function missingOtherClock(): string | undefined {
  return library() === undefined ? 'libfaketime is not installed; sudo apt-get install --no-install-recommends faketime' : undefined
}

/** Environment of a process whose clock is `seconds` ahead, or behind when that is negative. */
export function otherClock(seconds: number): Record<string, string> {
  const found = library()
  if (found === undefined) throw new Error(missingOtherClock())
  const sign = seconds < 0 ? '-' : '+'
  return { LD_PRELOAD: found, FAKETIME: `${sign}${Math.abs(seconds)}s`, FAKETIME_DONT_FAKE_MONOTONIC: '1' }
}

function library(): string | undefined {
  return globSync(LIBRARIES)[0]
}
