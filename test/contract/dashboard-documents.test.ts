/** Runs the commands of docs/dashboard.md that copy the database, with `kubectl exec` replaced by a process beside a dashboard that has the file open. */
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { commandsOf, read } from '../support/documents.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { PAYMENTS_SETTINGS } from '../../dashboard/payments/config.ts'
import { DASHBOARD_SETTINGS } from '../../dashboard/server/config.ts'
import { variableOf } from '#platform/settings.ts'

const PAGE = 'docs/dashboard.md'
const SELF = 'test/contract/dashboard-documents.test.ts'
const [backUp = '', restore = ''] = commandsOf(PAGE)
  .filter(({ mark }) => mark !== undefined && 'runBy' in mark && mark.runBy === SELF)
  .map(({ text }) => text)
/** Runs what stands behind `--`, as the container would. */
const KUBECTL = 'kubectl() { [[ $* == *" -- "* ]] || return 0; while [[ $1 != -- ]]; do shift; done; shift; "$@"; }'

test('a backup that is taken while the dashboard runs holds the newest rows, and a restore brings them back', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'database', 'dashboard.db')
  const run = (command: string): void => {
    const env = { PATH: `${process.execPath.replace(/\/node$/, '')}:${process.env['PATH'] ?? ''}`, DATABASE_FILE: file }
    execFileSync('bash', ['-c', `set -euo pipefail\n${KUBECTL}\n${command}`], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  }
  execFileSync('mkdir', [join(folder, 'database')])
  const dashboard = new DatabaseSync(file)
  dashboard.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; create table people (name text)')
  dashboard.exec(`insert into people values ('ada')`) // in the log beside the file, and not in the file yet
  run(backUp)
  const people = (database: DatabaseSync): unknown => database.prepare('select name from people').all()
  expect(people(new DatabaseSync(join(folder, 'dashboard.db'), { readOnly: true }))).toEqual([{ name: 'ada' }])
  dashboard.exec(`delete from people; insert into people values ('eve')`)
  run(restore)
  dashboard.close() // the restart
  const restarted = new DatabaseSync(file)
  restarted.exec('PRAGMA journal_mode = WAL')
  expect(people(restarted)).toEqual([{ name: 'ada' }])
  restarted.close()
  expect(readdirSync(join(folder, 'database'))).toEqual(['dashboard.db'])
})

test('the key names of the Secrets in the page are variables that the programs read', () => {
  const settings = { ...DASHBOARD_SETTINGS.shape, ...PAYMENTS_SETTINGS.shape }
  const variables = new Set(Object.keys(settings).map(variableOf))
  const named = [...read(PAGE).matchAll(/--from-literal=([A-Z_]+)=|`([A-Z]+_[A-Z_]+)`/g)].map(([, literal, code]) => literal ?? code ?? '')
  expect(new Set(named).size).toBeGreaterThan(5)
  expect(named.filter((name) => !variables.has(name))).toEqual([])
})
