/** Rights of the two Redis users, as in the ACL file and the chart. */
import { LEDGER_COMMANDS } from '#contract/ledger/ledger-functions.ts'
import { ledgerPattern, redisKeys } from '#contract/redis/redis-keys.ts'

/** Commands to read, for the heartbeat (TIME, ZADD, HSET, ZREM, HDEL inside a function), to count live processes, and for connections. */
const PROJECTION_COMMANDS = [
  'hmget',
  'hscan',
  'xread',
  'info',
  'time',
  'zadd',
  'zrem',
  'zcount',
  'hset',
  'hdel',
  'fcall',
  'ping',
  'client|setname',
] as const

/**
 * All commands of a gateway. EVAL, SCRIPT and FUNCTION are missing: with them a gateway that was taken over could stop Redis for all
 * programs. A database other than 0 in REDIS_URL needs `+select` too.
 */
export const GATEWAY_COMMANDS: readonly string[] = [...new Set([...PROJECTION_COMMANDS, ...LEDGER_COMMANDS])]

/** Rules of the gateways' user. @param prefix chart value `redis.keyPrefix` */
export function gatewayAcl(prefix: string): string {
  const { pods, acks, all } = redisKeys(prefix)
  const keys = [`%R~${all}`, `%RW~${pods}`, `%RW~${acks}`, `%RW~${ledgerPattern(prefix)}`]
  return [...keys, '-@all', ...GATEWAY_COMMANDS.map((command) => `+${command}`)].join(' ')
}

/** Rules of the operator's user. @param prefix chart value `redis.keyPrefix` */
export function operatorAcl(prefix: string): string {
  return `~${prefix}:* +@all -@admin -@dangerous +info`
}
