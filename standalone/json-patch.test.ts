import { describe, expect, it } from 'vitest'
import { applyJsonPatch, PatchError } from './json-patch.ts'

describe('applyJsonPatch', () => {
  const document = { a: { 'x/y~z': 1 }, list: ['one', 'two'] }

  it('adds, replaces and removes in objects and lists, on a copy', () => {
    const patched = applyJsonPatch<unknown>(document, [
      { op: 'test', path: '/a/x~1y~0z', value: 1 },
      { op: 'replace', path: '/a/x~1y~0z', value: 2 },
      { op: 'add', path: '/b', value: { c: [] } },
      { op: 'add', path: '/list/-', value: 'three' },
      { op: 'add', path: '/list/0', value: 'zero' },
      { op: 'remove', path: '/list/1' },
      { op: 'replace', path: '/list/0', value: 'nought' },
    ])
    expect(patched).toEqual({ a: { 'x/y~z': 2 }, b: { c: [] }, list: ['nought', 'two', 'three'] })
    expect(document).toEqual({ a: { 'x/y~z': 1 }, list: ['one', 'two'] })
  })

  it.each([
    [{ op: 'test', path: '/a', value: {} }],
    [{ op: 'test', path: '/absent', value: 1 }],
    [{ op: 'remove', path: '/absent' }],
    [{ op: 'replace', path: '/absent', value: 1 }],
    [{ op: 'add', path: '/absent/child', value: 1 }],
    [{ op: 'add', path: '/list/3', value: 1 }],
    [{ op: 'remove', path: '/list/2' }],
    [{ op: 'replace', path: '/list/x', value: 1 }],
    [{ op: 'replace', path: '', value: 1 }],
  ] as const)('refuses %j', (operation) => {
    expect(() => applyJsonPatch(document, [operation])).toThrow(PatchError)
  })
})
