/** The gateway program: reads the settings, connects to Redis, listens on two ports, and shuts down in order. It only composes parts. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import manifest from '../package.json' with { type: 'json' }
import { RedisProjectionSource } from './projection/redis-projection.ts'
import { largestText, loadConfig } from './config.ts'
import { BodyReader } from './dialects/body-reader.ts'
import { Gateway } from './gateway.ts'
import { fittingBodyLimits } from './http/body-budget.ts'
import { createHealthApp } from './http/health.ts'
import { callsWithin } from './http/load-guard.ts'
import { createGatewayServer } from './http/server.ts'
import { PodLedger } from './limits/pod-ledger.ts'
import { RedisUsage } from './usage/redis-usage.ts'
import { availableMemory } from '#platform/available-memory.ts'
import { systemClock } from '#platform/clock.ts'
import { openFileLimit } from '#platform/open-files.ts'
import { processEnv } from '#platform/settings.ts'
import { RedisConnection } from '#platform/redis-connection.ts'
import { listen, Misconfigured, runProgram, type Running } from '#platform/lifecycle.ts'
import { createLog, type ProcessLog } from '#platform/log.ts'

/** Length of the accept queue; the kernel may cap it (somaxconn), and drops connections beyond it. */
const BACKLOG = 4_096

/** Random bytes of the process name: enough that no two starts share one. */
const PROCESS_BYTES = 9
/** Longest wait for the answer to a report of usage, ms. */
const USAGE_COMMAND_MS = 2_000

await runProgram('gateway', start)

async function start(use: (log: ProcessLog) => void): Promise<Running> {
  const config = loadConfig(processEnv())
  const logging = createLog('gateway', config.logLevel)
  use(logging)
  const { log } = logging
  const { redis, redisKeyPrefix: keyPrefix, maxReplicas, limitsWaitMs: waitMs } = config
  const process = randomBytes(PROCESS_BYTES).toString('base64url')
  const usage = new RedisConnection(redis, 'headgate-gateway-usage', { commandMs: USAGE_COMMAND_MS })
  const gateway = new Gateway({
    settings: config,
    source: new RedisProjectionSource(redis, keyPrefix),
    process,
    ledger: new PodLedger({ redis, keyPrefix, process, maxReplicas, waitMs, clock: systemClock, log }),
    usage: new RedisUsage(usage, keyPrefix),
    clock: systemClock,
    log,
    version: manifest.version,
    bodyLimits: fittingBodyLimits(config.maxBodyBytes, availableMemory()),
    maxCalls: callsWithin(openFileLimit(), log),
    bodyReader: new BodyReader({ log, clock: systemClock, maxBodyBytes: largestText(config) }),
    extraCa: readCa(config.upstreamCaFile),
  })
  const health = createServer(createHealthApp(gateway.health))
  const api = createGatewayServer(gateway.app, gateway.errors)
  const metricsPort = await listen(health, 'METRICS_PORT', { port: config.metricsPort, backlog: BACKLOG })
  const port = await listen(api, 'PORT', { port: config.port, backlog: BACKLOG })
  await gateway.start()
  log.info({ port, metricsPort, version: manifest.version }, 'listening')
  // health ends last, so that probes read "not ready" while answers still run
  const stop = async (): Promise<void> => {
    const [deregistrationMs, drainMs] = [config.deregistrationSeconds * 1_000, config.drainSeconds * 1_000]
    log.info({ deregistrationMs, drainMs }, 'shutting down')
    const leftMs = await gateway.leave(deregistrationMs, drainMs)
    const drained = gateway.drain(leftMs)
    api.closeIdleConnections()
    await drained
    api.close()
    api.closeAllConnections()
    await gateway.stop()
    usage.close()
    health.close()
    health.closeAllConnections()
    log.info('shut down')
  }
  return { stop, failed: gateway.follower.failed }
}

function readCa(file: string | undefined): string | undefined {
  try {
    return file === undefined ? undefined : readFileSync(file, 'utf8')
  } catch (error) {
    throw new Misconfigured(`UPSTREAM_CA_FILE: ${file} cannot be read; mount the CA certificates there or unset it`, { cause: error })
  }
}
