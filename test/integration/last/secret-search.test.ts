import { expect, it } from 'vitest'
import { searchForBalances } from '../../support/balance-search.ts'
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

it('no balance of a prepaid account is in any answer, header, log, Event, status of a key, or metric of the whole run', async ({
  annotate,
  skip,
}) => {
  const { balances, files, leaks } = searchForBalances(lab.folder)
  skip(balances === 0, 'no balance was noted in this run')
  await annotate(`${balances} balances, ${files} files searched`)
  process.stdout.write(`balance search: ${balances} balances, ${files} files, ${leaks.length} hits\n`)
  expect(leaks).toEqual([])
})
