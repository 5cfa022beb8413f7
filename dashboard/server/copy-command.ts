/** `dashboard.js copy-database`: copies DATABASE_FILE into DATABASE_URL. Both come from the environment, since everybody on a machine sees arguments. */
import { createLog } from '#platform/log.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import { readEnv } from '#platform/settings.ts'
import { DASHBOARD_SETTINGS } from './config.ts'
import { copyDatabase } from './identity/copy-database.ts'

const SETTINGS = DASHBOARD_SETTINGS.pick({ databaseFile: true, databaseURL: true })

/** @returns the exit code */
export async function runCopyCommand(env: NodeJS.ProcessEnv): Promise<number> {
  const processLog = createLog('dashboard', 'warn')
  try {
    const { databaseFile, databaseURL } = readEnv(SETTINGS, env)
    if (databaseFile === undefined || databaseURL === undefined)
      throw new Misconfigured('DATABASE_FILE and DATABASE_URL: set both, the file to copy and the empty Postgres')
    for (const { table, rows } of await copyDatabase({ file: databaseFile }, { url: databaseURL }, processLog.log))
      process.stdout.write(`${table} ${rows}\n`)
    return 0
  } catch (error) {
    const lines = error instanceof Misconfigured ? error.lines : [error instanceof Error ? error.message : String(error)]
    for (const line of lines) process.stderr.write(`headgate-dashboard copy-database: ${line}\n`)
    process.stderr.write('headgate-dashboard copy-database: nothing was copied\n')
    return 1
  } finally {
    processLog.flush()
  }
}
