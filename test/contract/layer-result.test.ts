import { join } from 'node:path'
import { expect, it } from 'vitest'
import { appendResult, readResults, report, skippedLayer, type LayerResult } from '../support/layer-result.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'

const folder = temporaryFolderOfFile()

const result = (layer: string, passed: number, failed = 0): LayerResult => ({ layer, passed, failed, skipped: 0, seconds: 1.5, skips: [] })

it('the report ends with the totals alone on a line, and names each skip with its reason before it', () => {
  const skip = { ...result('unit', 3), skipped: 1, skips: [{ name: 'a test', reason: 'no IPv6 here' }] }
  const lines = report([skip, skippedLayer('e2e', 'needs root')]).split('\n')
  expect(lines.at(-1)).toBe('3 passed, 0 failed, 2 skipped')
  expect(lines).toContain('SKIPPED: unit: a test: no IPv6 here')
  expect(lines).toContain('SKIPPED: e2e: layer e2e: needs root')
})

it('a layer that ran twice counts once, with its last result', () => {
  const file = join(folder, 'summary')
  for (const one of [result('unit', 5, 1), result('contract', 2), result('unit', 6)]) appendResult(file, one)
  expect(report(readResults(file)).split('\n').at(-1)).toBe('8 passed, 0 failed, 0 skipped')
})

it('without any result the totals are zero', () => {
  expect(report(readResults(join(folder, 'absent')))).toBe('0 passed, 0 failed, 0 skipped')
})
