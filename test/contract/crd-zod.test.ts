import { describe, expect, test } from 'vitest'
import { API_KINDS } from '#api/kinds.ts'
import { validateManifest, type Validated } from '#api/validate.ts'
import type { ManifestRow } from './manifest-row.ts'
import { MANIFESTS } from './manifests.ts'

function check(row: ManifestRow): Validated {
  if (!row.previous) return validateManifest(row.manifest)
  const previous = validateManifest(row.previous)
  if (!previous.ok) throw new Error(`the object before is not a valid manifest: ${JSON.stringify(previous.errors)}`)
  return validateManifest(row.manifest, previous.object)
}

const ruleTexts = new Map(
  API_KINDS.flatMap(({ rules }) => rules.flatMap(({ path, rules: here }) => here.map((rule) => [`${path}#${rule.id}`, rule]))),
)

describe('without an API server', () => {
  test.each(MANIFESTS.filter((row) => row.refused === undefined))('accepted: $name', (row) => {
    const wanted = row.spec === undefined ? {} : { spec: row.spec }
    expect(check(row)).toEqual({ ok: true, object: expect.objectContaining(wanted) })
  })

  test.each(MANIFESTS.filter((row) => row.refused !== undefined))('refused: $name', (row) => {
    const validated = check(row)
    const errors = validated.ok ? [] : validated.errors
    const rule = row.rule === undefined ? undefined : ruleTexts.get(row.rule)
    expect(new Set(errors.map((error) => error.field)), 'no other field is refused').toEqual(new Set([row.refused]))
    expect(errors.map((error) => `${error.reason}: ${error.remedy}`).join('\n')).toContain(rule ? rule.reason : ': ')
  })

  test('every rule refuses at least one manifest of the table', () => {
    const covered = new Set(MANIFESTS.map((row) => row.rule))
    expect([...ruleTexts.keys()].filter((id) => !covered.has(id))).toEqual([])
  })
})
