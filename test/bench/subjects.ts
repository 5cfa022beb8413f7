/** Memory of many keys with limits that are all used within a minute, in Redis and in a gateway process. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import { LedgerRedis } from '../support/ledger-redis.ts'
import type { PartResult } from './operator-parts.ts'
import type { SubjectsConfig, SubjectsResult } from './subjects-process.ts'
import { table } from './table.ts'

const run = promisify(execFile)
/** With a number at the end, as long as a uid. */
const UIDS = '1d6f3a52-9f0e-4c55-8f3b-'
const SEEDED_AT_ONCE = 500
const MOST_REDIS_BYTES = 4_096
const MOST_PROCESS_BYTES = 1_536

/** @param subjects how many */
export async function subjectsPart(subjects: number): Promise<PartResult> {
  const redis = await LedgerRedis.start(LEDGER_TIMING, false)
  try {
    const empty = await usedMemory(redis)
    const uids = Array.from({ length: subjects }, (_, at) => `${UIDS}${at}`)
    for (let from = 0; from < subjects; from += SEEDED_AT_ONCE) {
      await Promise.all(uids.slice(from, from + SEEDED_AT_ONCE).map((uid) => redis.seed(uid, 'seed-of-an-installation')))
    }
    const config: SubjectsConfig = { redis: redis.credentials, uids: UIDS, subjects }
    const { stdout } = await run(process.execPath, [
      '--expose-gc',
      join(import.meta.dirname, 'subjects-process.ts'),
      JSON.stringify(config),
    ])
    const { held, bytesPerSubject, seconds } = JSON.parse(stdout) as SubjectsResult // printed by that program
    const inRedis = ((await usedMemory(redis)) - empty) / subjects
    const rows = [
      ['Redis', inRedis.toFixed(0), String(MOST_REDIS_BYTES)],
      ['gateway process', bytesPerSubject.toFixed(0), String(MOST_PROCESS_BYTES)],
    ]
    const text = [
      `subjects: ${subjects} keys with requests, tokens and a budget, each used once within ${seconds.toFixed(0)} s; ${held} of them used within the last minute when measured`,
      ...table([['bytes of each', 'seen', 'must be at most'], ...rows]),
    ].join('\n')
    return { text, isMissed: inRedis > MOST_REDIS_BYTES || bytesPerSubject > MOST_PROCESS_BYTES, data: { held, inRedis, bytesPerSubject } }
  } finally {
    await redis.stop()
  }
}

async function usedMemory(redis: LedgerRedis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.part.admin.info('memory'))?.[1] ?? 0)
}
