/**
 * The Redis Function library: operations that must be atomic. The operator loads it; gateways only call their two functions. Redis
 * checks the commands inside a function against the rights of its caller.
 */
import { libraryCode, libraryPrefix } from './function-library.ts'

/** Layout of the arguments and of the state behind them. Another layout is another library, so that two builds can run side by side. */
const MAJOR = 1
/** Number of the text within one layout. All texts answer the same calls. */
const REVISION = 2

/** A full Redis refuses no suspension and no deletion. The keyring bounds what the operator writes, and gateways have no right to write records. */
const FLAGS = { live: `'allow-oom'`, leave: `'allow-oom'`, write: `'allow-oom'` }

/** Names of the functions, and the text that defines them. @param prefix chart value `redis.keyPrefix` */
export function redisFunctions(prefix: string) {
  const library = `${libraryPrefix(prefix)}_v${MAJOR}`
  const names = {
    /** KEYS: pods, acks. ARGV: process, acknowledgement. */
    heartbeat: `${library}_heartbeat`,
    /** KEYS: pods, acks. ARGV: process. */
    leave: `${library}_leave`,
    /**
     * Applies changes to the current data set.
     * KEYS: meta, log, then the hash of each kind of record that changes (of the epoch in ARGV). ARGV: fence, epoch, installation, newest
     * revision seen, length of the log, those kinds, then four per change: kind, op, id, record text ('' for del). Returns
     * {'installation', id} for the store of another installation, {'fenced', fence} for a newer leader, {'epoch'} for another data set or an
     * older state of this one, else {'ok', rev of each change…}.
     */
    write: `${library}_write`,
    /**
     * Switches to a data set that was written beside the old one.
     * KEYS: meta, log, then the new hash of each kind of record (written to expire, so that a rebuild that broke off leaves nothing). ARGV:
     * fence, epoch, installation, schema, rev, epoch expected to be there ('' = none), '1' to replace another installation. Returns as
     * `write`.
     */
    switch: `${library}_switch`,
    /**
     * Names the processes with a recent heartbeat, and repairs forged or foreign data in their place.
     * KEYS: meta, pods, acks. ARGV: ms that a heartbeat counts for. Returns epoch, newest revision, then process, acknowledgement, …
     */
    live: `${library}_live`,
  }
  const code = libraryCode({ library, revision: REVISION, files: ['redis/projection.lua'], names, flags: FLAGS })
  return { ...names, library, code }
}

export type RedisFunctions = ReturnType<typeof redisFunctions>
