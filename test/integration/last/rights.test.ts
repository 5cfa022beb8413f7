import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operatorRights } from '../../../operator/rights.ts'
import { API_KINDS } from '../../../operator/api/kinds.ts'
import { allowedUses, grants } from '../../support/audit-log.ts'
import { openLab } from '../../support/lab.ts'

const lab = openLab()
const rights = operatorRights(API_KINDS)
const granted = grants(rights)

describe("the operator's rights, beside what the audit logs of this run show", () => {
  let used: ReadonlySet<string>
  beforeAll(async () => {
    used = await allowedUses(lab.folder, rights)
  })
  afterAll(() => lab.close())

  it('nothing was allowed that the table does not grant', ({ skip }) => {
    skip(used.size === 0, 'no operator ran')
    expect([...used].filter((use) => !granted.has(use))).toEqual([])
  })

  it('everything that the table grants was used, or says what proves it instead', ({ skip }) => {
    skip((process.env['HEADGATE_FILES'] ?? '') !== '', 'only some of the test files ran')
    const proven = [...granted].filter(([, right]) => right.provenBy !== undefined).map(([use]) => use)
    expect([...granted.keys()].filter((use) => !used.has(use))).toEqual(proven)
  })
})
