import { beforeAll, describe, expect, it } from 'vitest'
import { operatorRights } from '../../../operator/rights.ts'
import { API_KINDS } from '#api/kinds.ts'
import { allowedUses, grants } from '../../support/audit-log.ts'
import { openLab } from '../../support/lab.ts'

const lab = openLab()
const rights = operatorRights(API_KINDS)
const granted = grants(rights)

describe("the operator's rights, compared with the audit logs of this run", () => {
  let used: ReadonlySet<string>
  beforeAll(async () => {
    used = await allowedUses(lab.folder, rights)
  })

  it('no request was allowed that the table does not grant', ({ skip }) => {
    skip(used.size === 0, 'no operator ran')
    expect([...used].filter((use) => !granted.has(use))).toEqual([])
  })

  it('each right of the table was used, or its row names the proof instead', ({ skip }) => {
    skip((process.env['HEADGATE_FILES'] ?? '') !== '', 'only some of the test files ran')
    const unproven = [...granted].filter(([, right]) => right.provenBy === undefined).map(([use]) => use)
    expect(unproven.filter((use) => !used.has(use))).toEqual([])
  })
})
