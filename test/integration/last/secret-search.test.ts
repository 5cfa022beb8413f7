import { expect, it } from 'vitest'
import { openLab } from '../../support/lab.ts'
import { dumpCluster, searchForValues } from '../../support/secret-search.ts'

const lab = openLab()

it('no issued value is in any log, Event, status, metric, error body, keyring or Redis of the whole run', async ({ annotate, skip }) => {
  await dumpCluster(lab.plane, lab.folder)
  const { values, files, leaks } = searchForValues(lab.folder)
  skip(values === 0, 'no value was issued in this run')
  await annotate(`${values} issued values, ${files} files searched`)
  process.stdout.write(`secret search: ${values} issued values, ${files} files, ${leaks.length} hits\n`)
  expect(leaks).toEqual([])
})
