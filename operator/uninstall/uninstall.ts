/**
 * The subcommand `operator uninstall [--keep | --purge]`. The chart's pre-delete hook or a user runs it before Headgate is removed. The
 * leader releases every ApiKey; without a leader, this process takes the Lease and releases them. The command goes on for as long as there is
 * progress. It never blocks an uninstall: it prints each error with the remedy, and its exit code is 0.
 */
import { messageOf } from '#platform/message-of.ts'
import { systemClock as clock } from '#platform/clock.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import { createLog } from '#platform/log.ts'
import { loadConfig, type OperatorConfig } from '../config.ts'
import { connect, type Connections } from '../connect.ts'
import { LEASE_NAME } from '#kube/leader.ts'
import { leases, type Secret, secrets } from '#kube/resources.ts'
import { INSTALLATION_SECRET, knownInstallation } from '../shards/installation.ts'
import { Progress } from './progress.ts'
import { HELD, HELD_KINDS, releaseObjects } from './release-objects.ts'
import { RECORDS_KEY } from '#contract/records/mounted-folder.ts'
import { unpackShard } from '#contract/records/shard-text.ts'
import { ledgerPattern, redisKeys } from '#contract/redis/redis-keys.ts'
import { inParallel } from '../loop/in-parallel.ts'

/** Names of the operator's own Secrets in its namespace. */
const OWN_SECRET = /^hg-(keyring|models|accounts|upstream|spend|balances|credits|usage|history|values)-|^hg-installation$/
/** Those that stay while accounts have books: the id of the installation is a part of every name in the ledger. */
const KEPT_WITH_BOOKS = /^hg-(balances|credits|spend|usage|history)-|^hg-installation$/
const OWN_LABEL = 'app.kubernetes.io/managed-by=headgate-operator'
/** Maximum number of concurrent API calls. */
const CALLS = 16
/** Redis keys per scan and per deletion. */
const SCAN_COUNT = 500
const USAGE = `Usage: operator uninstall [--keep | --purge]

Removes the finalizer of Headgate from every ApiKey, so that ApiKeys and their namespaces can be deleted without an operator.
Run this command before you remove Headgate. The Helm chart runs it in a pre-delete hook.

  --keep   keep the keyring: after a new installation the same keys work (default)
  --purge  delete the keyring, the records, the mounted credentials, the spend of budgets, the Lease and all data in Redis, too. If there are
           accounts, their books, spend and usage stay: a new installation finds them. If Redis does not answer, Secret hg-installation
           stays, so that a later run or installation knows the data in Redis as its own
  --help   print this text

The command reads the same environment variables as the operator. Its exit code is 0 even after an error: it prints each
remaining step.
`
/** @returns the exit code */
export async function uninstall(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const unknown = args.find((arg) => !['--keep', '--purge', '--help'].includes(arg))
  if (unknown !== undefined || args.includes('--help') || args.length > 1) {
    print(unknown === undefined ? USAGE : `unknown argument ${JSON.stringify(unknown)}\n\n${USAGE}`)
    return args.includes('--help') ? 0 : 2
  }
  try {
    await run(loadConfig(env), env.KUBECONFIG, args.includes('--purge'))
  } catch (error) {
    const lines = error instanceof Misconfigured ? error.lines : [messageOf(error)]
    for (const line of lines) print(`uninstall: ${line}`)
    const remedies = HELD_KINDS.map(
      ({ finalizer, resource: { kind, plural } }) => `the finalizer ${finalizer} from the remaining ${kind}s: kubectl get ${plural} -A`,
    )
    print(`uninstall: not finished. Remove ${remedies.join('; ')}`)
  }
  return 0
}

async function run(config: OperatorConfig, kubeconfig: string | undefined, isPurge: boolean): Promise<void> {
  const { log } = createLog('uninstall', 'error')
  const connections = connect(config, log, kubeconfig, (reason) => print(`uninstall: ${reason.message}`))
  const { kube, lease } = connections
  const progress = new Progress({ clock, print, noun: HELD })
  const work = async (): Promise<void> => {
    const { released, failed } = await releaseObjects({ kube, lease, clock, config, progress, print })
    print(`uninstall: ${released} ${HELD} were released${failed > 0 ? `, ${failed} could not be` : ''}`)
    if (isPurge) await purge(connections, config, progress)
    else print('uninstall: the keyring is kept; after a new installation the same keys work')
  }
  try {
    await progress.bound(work())
  } finally {
    await lease.release()
    connections.redis.close()
    await connections.transport.close()
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Tries each part on its own, and prints each part that cannot be deleted. */
async function purge({ kube, own: redis }: Connections, { namespace, redisKeyPrefix }: OperatorConfig, progress: Progress): Promise<void> {
  const attempt = async (what: string, remove: () => Promise<string>): Promise<boolean> => {
    progress.moved()
    try {
      print(`uninstall: ${await remove()}`)
      return true
    } catch (error) {
      print(`uninstall: ${what} could not be deleted: ${messageOf(error)}`)
      return false
    }
  }
  const isRedisEmpty = await attempt('the data in Redis', async () => {
    redis.belongsTo((await knownInstallation({ kube, namespace })) ?? '') // the data of another installation stay
    return `${await removeRedisKeys(redis, redisKeyPrefix, progress)} Redis keys were deleted`
  })
  await attempt('the Secrets of the operator', async () => {
    const all = (await kube.list(secrets, namespace, OWN_LABEL)).filter(({ metadata }) => OWN_SECRET.test(metadata.name))
    const areKept = (await Promise.all(all.map(hasBooks))).some(Boolean)
    const isKept = ({ metadata: { name } }: Secret): boolean =>
      (areKept && KEPT_WITH_BOOKS.test(name)) || (!isRedisEmpty && name === INSTALLATION_SECRET)
    const own = all.filter((secret) => !isKept(secret))
    if (areKept)
      print(
        'uninstall: the books of accounts (Secrets hg-balances-* and hg-credits-*), their spend (hg-spend-*) and their usage (hg-usage-*, hg-history-*) are kept; a new installation in this namespace finds them',
      )
    if (!isRedisEmpty)
      print(
        `uninstall: Secret ${INSTALLATION_SECRET} is kept, because only its id tells which data in Redis are ours: run this command again, or install again in this namespace`,
      )
    await inParallel(own, CALLS, ({ metadata }) => kube.remove(secrets, { namespace, name: metadata.name }, { uid: metadata.uid ?? '' }))
    return `${own.length} Secrets of the operator were deleted`
  })
  await attempt('the Lease', async () => {
    await kube.remove(leases, { namespace, name: LEASE_NAME })
    return 'the Lease was deleted'
  })
}

/** Whether a Secret holds books of an account, or Credits. Books that cannot be read count: they may hold some. */
async function hasBooks({ metadata, data }: Secret): Promise<boolean> {
  if (!/^hg-(balances|credits)-/.test(metadata.name)) return false
  const names = await unpackShard(Buffer.from(data?.[RECORDS_KEY] ?? '', 'base64')).catch(() => undefined)
  return names === undefined || names.length > 0
}

/** Deletes only keys with names of Headgate: another program may share the prefix by mistake. */
async function removeRedisKeys(redis: Connections['own'], prefix: string, progress: Progress): Promise<number> {
  let removed = 0
  for (const pattern of [redisKeys(prefix).all, ledgerPattern(prefix)]) {
    let cursor = '0'
    do {
      const [next, keys] = await redis.run((client) => client.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT))
      if (keys.length > 0) removed += await redis.run((client) => client.unlink(...keys))
      cursor = next
      progress.moved()
    } while (cursor !== '0')
  }
  return removed
}
