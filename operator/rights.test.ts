import { describe, expect, test } from 'vitest'
import { operatorRights, OWN_SECRETS, rightsTemplate } from './rights.ts'

const PLAIN = { resource: { plural: 'plans', namespaced: true }, finalizer: undefined }
const FINAL = { resource: { plural: 'accounts', namespaced: true }, finalizer: 'headgate.dev/settle' }

function verbsOf(resource: string, where = 'watched'): readonly string[] {
  const rows = operatorRights([PLAIN, FINAL]).filter((right) => right.resource === resource && right.where === where)
  return rows.flatMap(({ verbs }) => verbs)
}

describe('rights that follow from a kind', () => {
  test('a kind without a finalizer is only watched, and gets its status', () => {
    expect(verbsOf('plans')).toEqual(['list', 'watch'])
    expect(verbsOf('plans/status')).toEqual(['patch'])
    expect(verbsOf('plans', 'former')).toEqual([])
  })

  test('a kind with a finalizer is also read live and patched, and can be released where it is not watched any more', () => {
    expect(verbsOf('accounts')).toEqual(['list', 'watch', 'get', 'patch'])
    expect(verbsOf('accounts', 'former')).toEqual(['get', 'list', 'patch'])
  })

  test('a cluster-scoped kind gets its rights with the accounts, and has no former namespaces', () => {
    const rights = operatorRights([{ ...FINAL, resource: { ...FINAL.resource, namespaced: false } }])
    expect(new Set(rights.filter(({ resource }) => resource.startsWith('accounts')).map(({ where }) => where))).toEqual(
      new Set(['accounts']),
    )
  })

  test('no object of a user is ever updated, and no Secret of a user listed or watched', () => {
    const watched = operatorRights([PLAIN, FINAL]).filter(({ where }) => where !== 'own')
    expect(watched.filter(({ verbs, resource }) => verbs.includes('update') && !resource.endsWith('/finalizers'))).toEqual([])
    expect(verbsOf('secrets')).toEqual(['get', 'create', 'patch', 'delete'])
  })

  test('the template holds each row once, with its reason', () => {
    const text = rightsTemplate([PLAIN, FINAL])
    for (const { resource, why } of operatorRights([PLAIN, FINAL])) expect(text).toContain(`  resources: [${resource}] # ${why}\n`)
    expect(text.match(/^- apiGroups:/gm)).toHaveLength(operatorRights([PLAIN, FINAL]).length)
    expect(text).toContain('plans, accounts')
  })

  test('a name that Helm would run is refused', () => {
    expect(() => rightsTemplate([{ resource: { plural: '{{ .Values }}', namespaced: true }, finalizer: undefined }])).toThrow(TypeError)
  })
})

test.each([
  ['hg-installation', true],
  ['hg-keyring-32-31', true],
  ['hg-models-8-0', true],
  ['hg-credits-8-3', true],
  ['hg-balances-8-3', true],
  ['hg-credits-8-3', true],
  ['hg-credits-8-3-damaged-01abcdef', true],
  ['hg-upstream-8-7-damaged-01abcdef', true],
  ['hg-keyring-32-31x', false],
  ['hg-headgate-redis', false],
  ['my-hg-installation', false],
])('%s is a Secret of the operator: %s', (name, isOwn) => {
  expect(new RegExp(OWN_SECRETS).test(name)).toBe(isOwn)
})
