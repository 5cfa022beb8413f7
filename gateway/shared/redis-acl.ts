/** Rights of the two Redis users, as an ACL file and the chart carry them. */
import { redisKeys } from './redis-keys.ts'

/**
 * Everything that a gateway runs: reading, its heartbeat (TIME, ZADD, HSET, ZREM, HDEL inside a function), and what a connection needs.
 * No EVAL, SCRIPT or FUNCTION: with them a gateway that was taken over could stop Redis for everybody. A database other than 0 in
 * REDIS_URL needs `+select` too.
 */
export const GATEWAY_COMMANDS = [
  'hmget',
  'hscan',
  'xread',
  'info',
  'time',
  'zadd',
  'zrem',
  'hset',
  'hdel',
  'fcall',
  'client|setname',
] as const

/** Rules of the gateways' user. @param prefix chart value `redis.keyPrefix` */
export function gatewayAcl(prefix: string): string {
  const { pods, acks, all } = redisKeys(prefix)
  return [`%R~${all}`, `%RW~${pods}`, `%RW~${acks}`, '-@all', ...GATEWAY_COMMANDS.map((command) => `+${command}`)].join(' ')
}

/** Rules of the operator's user. @param prefix chart value `redis.keyPrefix` */
export function operatorAcl(prefix: string): string {
  return `~${prefix}:* +@all -@admin -@dangerous +info`
}
