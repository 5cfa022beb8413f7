import { describe, expect, test } from 'vitest'
import { KINDS } from '../../operator/api/crd.ts'
import { ruleMessage } from '../../operator/api/rule.ts'
import { validateManifest, type Validated } from '../../operator/api/validate.ts'
import type { ManifestRow } from './manifest-row.ts'
import { MANIFESTS } from './manifests.ts'

function judge(row: ManifestRow): Validated {
  if (!row.previous) return validateManifest(row.manifest)
  const previous = validateManifest(row.previous)
  if (!previous.ok) throw new Error(`the object before is no good manifest: ${JSON.stringify(previous.faults)}`)
  return validateManifest(row.manifest, previous.object)
}

const ruleTexts = new Map(
  KINDS.flatMap(({ rules }) => rules.flatMap(({ path, rules: here }) => here.map((rule) => [`${path}#${rule.id}`, rule]))),
)

describe('without an API server', () => {
  test.each(MANIFESTS.filter((row) => row.refused === undefined))('accepted: $name', (row) => {
    const wanted = row.spec === undefined ? {} : { spec: row.spec }
    expect(judge(row)).toEqual({ ok: true, object: expect.objectContaining(wanted) })
  })

  test.each(MANIFESTS.filter((row) => row.refused !== undefined))('refused: $name', (row) => {
    const validated = judge(row)
    const faults = validated.ok ? [] : validated.faults
    const rule = row.rule === undefined ? undefined : ruleTexts.get(row.rule)
    expect(new Set(faults.map((fault) => fault.field)), 'nothing else is blamed').toEqual(new Set([row.refused]))
    expect(faults.map((fault) => `${fault.reason}: ${fault.cure}`).join('\n')).toContain(rule ? ruleMessage(rule) : ': ')
  })

  test('every rule refuses at least one manifest of the table', () => {
    const covered = new Set(MANIFESTS.map((row) => row.rule))
    expect([...ruleTexts.keys()].filter((id) => !covered.has(id))).toEqual([])
  })
})
