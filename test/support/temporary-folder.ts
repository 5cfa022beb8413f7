/** Folders in the machine's temporary folder that tests use and remove. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, onTestFinished } from 'vitest'

const make = (): string => mkdtempSync(join(tmpdir(), 'headgate-test-'))
const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true })

/** Makes an empty folder in a test or in `beforeEach`. The folder is removed after the `afterEach` hooks of the test. */
export function temporaryFolder(): string {
  const folder = make()
  onTestFinished(() => remove(folder))
  return folder
}

/** Makes an empty folder at the top level of a test file. The folder is removed after the `afterAll` hooks of the file. */
export function temporaryFolderOfFile(): string {
  const folder = make()
  afterAll(() => remove(folder))
  return folder
}
