import { expect, test } from 'vitest'
import { softLimitIn } from './open-files.ts'

const limits = (files: string): string =>
  `Limit                     Soft Limit           Hard Limit           Units     \nMax processes             127219               127219               processes \nMax open files            ${files}              files     \n`

test('the soft limit of open files is read from the limits of the process, and is unlimited where none is named', () => {
  expect(softLimitIn(limits('20000                1048576'))).toBe(20_000)
  expect(softLimitIn(limits('unlimited            unlimited'))).toBe(Infinity)
  expect(softLimitIn('')).toBe(Infinity)
})
