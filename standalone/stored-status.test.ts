import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { apiKey } from '../test/support/objects.ts'
import { temporaryFolder } from '../test/support/temporary-folder.ts'
import { apiKeys } from '#api/resources.ts'
import { API_KINDS } from '#api/kinds.ts'
import { refOf } from '#kube/port.ts'
import { RUN_RECORD, runRecordText } from './run-record.ts'
import { StateFolder } from './state-folder.ts'
import { readStoredStatus } from './stored-status.ts'

describe('the state that make status reads', () => {
  let root = ''
  beforeEach(() => {
    root = join(temporaryFolder(), '.headgate')
  })

  test('is absent if make run was never started', () => {
    expect(readStoredStatus(root, API_KINDS)).toBeUndefined()
  })

  test('is the state that the state folder wrote, also while another process uses that folder', () => {
    const folder = new StateFolder(root)
    const key = apiKey('bot')
    folder.persist({ resource: apiKeys, ref: refOf(key), before: undefined, after: key })
    const run = { pid: 7, baseURL: 'http://127.0.0.1:1', manifests: 'm', startedMs: 1 }
    folder.textFile(RUN_RECORD).write(runRecordText(run))
    const stored = readStoredStatus(root, API_KINDS)
    expect(stored?.kinds.map(({ objects }) => objects)).toEqual([[key], []])
    expect(stored?.run).toEqual(run)
    expect(readdirSync(root), 'nothing was changed').toContain('lock')
  })

  test('has no run if the record is damaged, and a damaged object is named', () => {
    mkdirSync(join(root, 'objects/apikeys/shop'), { recursive: true })
    writeFileSync(join(root, RUN_RECORD), '{"pid":')
    expect(readStoredStatus(root, API_KINDS)).toMatchObject({ run: undefined })
    writeFileSync(join(root, 'objects/apikeys/shop/bot.json'), '{"kind":')
    expect(() => readStoredStatus(root, API_KINDS)).toThrow(/apikeys\/shop\/bot\.json: .*restore the file, or delete it/)
  })
})
