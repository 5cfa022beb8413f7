import { expect, it } from 'vitest'
import { notesFolder, notesOfRun } from '../../support/checked-streams.ts'
import { openLab } from '../../support/lab.ts'

const lab = openLab()

it('every stream of Messages that a gateway of the whole run has written follows the grammar', async ({ annotate, skip }) => {
  const { streams, faults } = notesOfRun(notesFolder(lab.folder))
  skip(streams === 0 && (process.env['HEADGATE_FILES'] ?? '') !== '', 'no test of the chosen files has streamed a message')
  await annotate(`${streams} streams checked`)
  process.stdout.write(`streams of Messages: ${streams} checked, ${faults.length} faults\n`)
  expect(faults).toEqual([])
  expect(streams).toBeGreaterThan(0)
})
