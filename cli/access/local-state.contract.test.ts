import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { accounts } from '#api/resources.ts'
import { StateFolder } from '../../standalone/state-folder.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { StateFile } from './local-state.ts'

const RUN = { pid: 1, baseURL: 'http://127.0.0.1:8080', usageURL: 'http://127.0.0.1:4711', manifests: 'examples/accounts', startedMs: 1 }
const ACCOUNT = {
  ...{ apiVersion: 'headgate.dev/v1alpha1', kind: 'Account', metadata: { name: 'acme', uid: 'u' } },
  ...{ spec: { planRef: { name: 'starter' } }, status: { balance: { amount: '1', currency: 'USD', asOf: '2026-11-27T10:00:00Z' } } },
}

/** A folder as `make run` keeps it, and still has it open. */
function stateOf(run: typeof RUN & { readonly endedMs?: number }): StateFile {
  const folder = join(temporaryFolder(), 'state')
  const state = new StateFolder(folder)
  state.setFact('run', run)
  state.persist({ resource: accounts, ref: { namespace: '', name: 'acme' }, before: undefined, after: ACCOUNT })
  state.close()
  return new StateFile(folder)
}

describe('the state of `make run`', () => {
  test('says where usage is served, and has the objects', async () => {
    const state = stateOf(RUN)
    expect([await state.usageURL(), await state.manifests()]).toEqual([RUN.usageURL, RUN.manifests])
    expect(await state.object('accounts', 'acme')).toEqual(ACCOUNT)
    expect(await state.object('accounts', 'other')).toBeUndefined()
  })

  test('has no address after the end, and still the objects', async () => {
    const state = stateOf({ ...RUN, endedMs: 2 })
    await expect(state.usageURL()).rejects.toThrow('`make run` is not running in this folder')
    expect(await state.manifests()).toBe(RUN.manifests)
    expect(await state.object('accounts', 'acme')).toEqual(ACCOUNT)
  })

  test('that is missing is an error with the remedy, and makes no file', async () => {
    const folder = temporaryFolder()
    await expect(new StateFile(folder).usageURL()).rejects.toThrow(
      /state\.db is missing; use --local in the folder where `make run` was started/,
    )
  })
})
