import { describe, expect, test } from 'vitest'
import { type LabelSelector, selects } from './label-selector.ts'

type Operator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
const term = (key: string, operator: Operator, values?: string[]): LabelSelector => ({
  matchExpressions: [{ key, operator, ...(values ? { values } : {}) }],
})

describe('selects', () => {
  test.each<[string, LabelSelector, Record<string, string>, boolean]>([
    ['an empty selector selects all', {}, {}, true],
    ['all labels must match', { matchLabels: { a: '1', b: '2' } }, { a: '1', b: '2', c: '3' }, true],
    ['one that differs is enough', { matchLabels: { a: '1', b: '2' } }, { a: '1', b: '9' }, false],
    ['one that is missing is enough', { matchLabels: { a: '1' } }, {}, false],
    ['In: one of the values', term('a', 'In', ['1', '2']), { a: '2' }, true],
    ['In: another value', term('a', 'In', ['1', '2']), { a: '3' }, false],
    ['In: no such label', term('a', 'In', ['1']), {}, false],
    ['NotIn: another value', term('a', 'NotIn', ['1']), { a: '2' }, true],
    ['NotIn: that value', term('a', 'NotIn', ['1']), { a: '1' }, false],
    ['NotIn: no such label counts as another value', term('a', 'NotIn', ['1']), {}, true],
    ['Exists', term('a', 'Exists'), { a: '' }, true],
    ['Exists: no such label', term('a', 'Exists'), { b: '' }, false],
    ['DoesNotExist', term('a', 'DoesNotExist'), { b: '' }, true],
    ['DoesNotExist: it does', term('a', 'DoesNotExist'), { a: '' }, false],
    ['labels and terms must both hold', { matchLabels: { a: '1' }, ...term('b', 'Exists') }, { a: '1' }, false],
  ])('%s', (_what, selector, labels, isSelected) => {
    expect(selects(selector, labels)).toBe(isSelected)
  })

  test('a namespace without labels is treated like one without matching labels', () => {
    expect(selects({ matchLabels: { a: '1' } })).toBe(false)
    expect(selects({})).toBe(true)
  })
})
