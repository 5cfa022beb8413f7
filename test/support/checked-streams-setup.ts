/**
 * Loaded before each test file of the layers that have gateways: a test fails if a gateway has written a stream of wrong grammar since the
 * test before it, in this process or in a program that the file has started.
 */
import { mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, afterEach, expect, inject } from 'vitest'
import { checkAnswers, notesFolder, STREAMS_FILE, takeFaults } from './checked-streams.ts'
import type { LabAddress } from './integration-setup.ts'
import { temporaryFolderOfFile } from './temporary-folder.ts'

const INSTALLED = Symbol.for('headgate.checkedStreams')

const lab = inject('lab') as LabAddress | undefined // the other layers have none
const folder = lab === undefined ? temporaryFolderOfFile() : notesFolder(lab.folder)
mkdirSync(folder, { recursive: true })
process.env[STREAMS_FILE] = join(folder, `${basename(expect.getState().testPath ?? 'test')}-${process.pid}`)

const expectNone = (): void => expect(takeFaults()).toEqual([])

// files of a layer that is not isolated share one process
if (!(INSTALLED in globalThis)) {
  Object.assign(globalThis, { [INSTALLED]: true })
  checkAnswers()
}
afterEach(expectNone)
afterAll(expectNone)
