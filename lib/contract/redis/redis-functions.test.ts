import { describe, expect, test } from 'vitest'
import { libraryRevision } from './function-library.ts'
import { redisFunctions } from './redis-functions.ts'

describe('the function library', () => {
  test.each([
    ['hg', 'hg_v1'],
    ['my-app', 'my_2d_app_v1'],
    ['my_app', 'my_5f_app_v1'],
    ['a:b', 'a_3a_b_v1'],
    ['é', '_c3a9__v1'],
  ])('of the prefix %s has a name that Redis accepts and no other prefix has', (prefix, library) => {
    const functions = redisFunctions(prefix)
    expect(functions.library).toBe(library)
    const { code, ...names } = functions
    for (const name of Object.values(names)) expect(name).toMatch(/^[A-Za-z0-9_]+$/)
    for (const name of Object.values(names)) expect(code).toContain(name)
    expect(code.startsWith(`#!lua name=${library}\n`)).toBe(true)
  })

  test('contains its revision, and a foreign text has none', () => {
    expect(libraryRevision(redisFunctions('hg').code)).toBeGreaterThan(0)
    expect(libraryRevision('#!lua name=hg_v1\nreturn 1')).toBe(0)
  })
})
