/** Deletes all remaining data of Headgate for `--purge`: the operator's own Secrets, the Lease, and everything in Redis. */
import { messageOf } from '#platform/message-of.ts'
import { ledgerPattern, redisKeys } from '#contract/redis/redis-keys.ts'
import type { OperatorConfig } from '../config.ts'
import type { Connections } from '../connect.ts'
import { inParallel } from '../loop/in-parallel.ts'
import { LEASE_NAME } from '#kube/leader.ts'
import { leases, secrets } from '#kube/resources.ts'

/** Names of the operator's own Secrets in its namespace. */
const OWN_SECRET = /^hg-(keyring|models|upstream|spend)-|^hg-installation$/
const OWN_LABEL = 'app.kubernetes.io/managed-by=headgate-operator'
/** Most concurrent API calls. */
const CALLS = 16
/** Redis keys per scan and per deletion. */
const SCAN_COUNT = 500

/** Tries each part on its own, and prints each part that cannot be deleted. */
export async function purge(
  { kube, redis }: Connections,
  { namespace, redisKeyPrefix }: OperatorConfig,
  print: (text: string) => void,
): Promise<void> {
  const attempt = async (what: string, remove: () => Promise<string>): Promise<void> => {
    try {
      print(`uninstall: ${await remove()}`)
    } catch (error) {
      print(`uninstall: ${what} could not be deleted: ${messageOf(error)}`)
    }
  }
  await attempt('the Secrets of the operator', async () => {
    const own = (await kube.list(secrets, namespace, OWN_LABEL)).filter(({ metadata }) => OWN_SECRET.test(metadata.name))
    await inParallel(own, CALLS, ({ metadata }) => kube.remove(secrets, { namespace, name: metadata.name }, { uid: metadata.uid ?? '' }))
    return `${own.length} Secrets of the operator were deleted`
  })
  await attempt('the data in Redis', async () => `${await removeRedisKeys(redis, redisKeyPrefix)} Redis keys were deleted`)
  await attempt('the Lease', async () => {
    await kube.remove(leases, { namespace, name: LEASE_NAME })
    return 'the Lease was deleted'
  })
}

/** Deletes only keys with names of Headgate: another program may share the prefix by mistake. */
async function removeRedisKeys(redis: Connections['redis'], prefix: string): Promise<number> {
  let removed = 0
  for (const pattern of [redisKeys(prefix).all, ledgerPattern(prefix)]) {
    let cursor = '0'
    do {
      const [next, keys] = await redis.run((client) => client.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT))
      if (keys.length > 0) removed += await redis.run((client) => client.unlink(...keys))
      cursor = next
    } while (cursor !== '0')
  }
  return removed
}
