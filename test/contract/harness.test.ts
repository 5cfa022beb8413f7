/** Parts of the harness whose silent failure would look like success: the searches for issued values and for balances, the comparison of rights, the totals. */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { API_KINDS } from '#api/kinds.ts'
import { operatorRights } from '../../operator/rights.ts'
import { report } from '../run-layers.ts'
import { allowedUses, grants } from '../support/audit-log.ts'
import { noteBalance, searchForBalances } from '../support/balance-search.ts'
import { filesBelow, read } from '../support/documents.ts'
import { searchForValues } from '../support/secret-search.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('the search for issued values finds a value in a log, and reports the place without the value', () => {
  const value = `sk-hg1${'a'.repeat(10)}${'B'.repeat(43)}000000`
  const folder = temporaryFolder()
  appendFileSync(join(folder, 'issued-values'), `${value}\n`)
  appendFileSync(join(folder, 'quiet.log'), 'sk-hg1aaaaaaaaaa…0000 was issued\n')
  expect(searchForValues(folder)).toMatchObject({ values: 1, files: 1, leaks: [] })
  appendFileSync(join(folder, 'loud.log'), `authorization: Bearer ${value}\n`)
  const { leaks } = searchForValues(folder)
  expect(leaks.map(({ file }) => file)).toContain('loud.log')
  expect(JSON.stringify(leaks)).not.toContain('BBBB')
})

test.each(['7391.482653', '"left":7391482653,', '7.391482653e+09', '7391.4826529999999', 'USD 7,391.482653', '-7391.48265300'])(
  'the search for balances finds %s outside of Secrets and Redis',
  (shown) => {
    const folder = temporaryFolder()
    noteBalance(folder, '7391.482653')
    mkdirSync(join(folder, 'hashes-allowed'))
    writeFileSync(join(folder, 'hashes-allowed', 'redis.txt'), shown)
    writeFileSync(join(folder, 'quiet.log'), 'id 17391482653 of 2026-11-27, 7391.48 ms, [7,391,482]\n')
    expect(searchForBalances(folder)).toEqual({ balances: 1, files: 1, leaks: [] })
    appendFileSync(join(folder, 'loud.log'), `Credits [5,${shown}]\n`)
    expect(searchForBalances(folder).leaks).toEqual([{ file: 'loud.log', balance: '7391.482653' }])
    expect(() => noteBalance(folder, '25.00')).toThrow('25.00 has fewer than 10 digits')
  },
)

test('a request in an audit log counts as a use of its verb, unless it was refused, and an ungranted use is found', async () => {
  const folder = temporaryFolder()
  const rights = operatorRights(API_KINDS)
  const request = (verb: string, decision = 'allow') => ({
    ...{ kind: 'Event', level: 'Metadata', verb, user: { username: 'system:serviceaccount:headgate-story:headgate-operator' } },
    objectRef: { resource: 'apikeys', subresource: 'status', apiGroup: 'headgate.dev', namespace: 'shop', name: 'bot' },
    annotations: { 'authorization.k8s.io/decision': decision, 'authorization.k8s.io/reason': 'RBAC: allowed by …' },
  })
  const cut = '{"kind":"Event","level":"Meta' // the server was killed while it wrote
  const lines = [request('patch'), request('delete'), request('get', 'forbid')].map((one) => JSON.stringify(one))
  mkdirSync(join(folder, 'control-plane/audit'), { recursive: true })
  writeFileSync(join(folder, 'control-plane/audit/audit.log'), `${cut}${lines.join('\n')}\n${cut}`)
  const uses = [...(await allowedUses(folder, rights))]
  expect(uses).toEqual(['watched patch headgate.dev/apikeys/status', 'watched delete headgate.dev/apikeys/status'])
  expect(uses.filter((use) => !grants(rights).has(use))).toEqual(['watched delete headgate.dev/apikeys/status'])
})

test('no unit test runs a composed program: its file is named x.contract.test.ts', () => {
  const unit = ['operator', 'standalone', 'dashboard']
    .flatMap(filesBelow)
    .filter((path) => path.endsWith('.test.ts') && !/\.(contract|property)\.test\.ts$/.test(path))
  expect(unit.length).toBeGreaterThan(100)
  expect(unit.filter((path) => /\/(operator|dashboard)-world\.ts'/.test(read(path)))).toEqual([])
})

test('a run ends with its totals alone on a line, and names each failure and each skip before', () => {
  const skips = [{ name: 'a test', reason: 'no IPv6 here' }]
  const failures = ['lib/kube/port.test.ts > a call ends: expected 200 to be 401']
  expect(report([{ layer: 'unit', passed: 3, failures, seconds: 1, skips }]).split('\n')).toEqual([
    'unit             3 passed,     1 failed,     1 skipped      1.0 s',
    'FAILED: unit: lib/kube/port.test.ts > a call ends: expected 200 to be 401',
    'SKIPPED: unit: a test: no IPv6 here',
    '3 passed, 1 failed, 1 skipped',
  ])
})
