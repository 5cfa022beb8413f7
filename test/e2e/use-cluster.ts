/** Starts the one-node cluster for the tests of one file. */
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { type Cluster, clusterCalls, missingHere, progress, startCluster } from './cluster.ts'

export interface UsedCluster {
  readonly cluster: Cluster
  readonly setUpSeconds: () => number
}

/**
 * Registers the hooks of a test file: starts the cluster, stops it at the end, and prints pods, Events and logs after a failed test. If the
 * machine cannot run a cluster, each test is skipped with the reason.
 * @param prepare runs once, after the start
 */
export function useCluster(prepare: (cluster: Cluster) => Promise<void> = async () => undefined): UsedCluster {
  const cluster = clusterCalls()
  let skipReason: string | undefined
  let isStarted = false
  let setUpSeconds = 0

  beforeAll(async () => {
    skipReason = await missingHere()
    if (skipReason !== undefined) return
    const start = performance.now()
    await startCluster()
    isStarted = true
    setUpSeconds = (performance.now() - start) / 1000
    await prepare(cluster)
  })
  afterAll(async () => {
    if (isStarted) await cluster.stop()
  })
  beforeEach(({ skip }) => {
    skip(skipReason !== undefined, skipReason)
  })
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') progress(await cluster.describe())
  })
  return { cluster, setUpSeconds: () => setUpSeconds }
}
