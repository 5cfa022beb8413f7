import { describe, expect, test } from 'vitest'
import { servedModel } from '../../../test/support/objects.ts'
import { allowedNamespaces, isNarrower, type Allowed, type Publishing, publishingOf } from './publishing.ts'

const SELECTOR = { from: 'Selector', selector: {} } as const
const model = (from: 'Same' | 'All' | 'Selector') =>
  servedModel('llama', { allowedNamespaces: from === 'Selector' ? SELECTOR : { from } }, { namespace: 'shop' })

describe('publishing', () => {
  test.each<['Same' | 'All' | 'Selector', string[], boolean, Publishing]>([
    ['Same', [], false, 'Private'],
    ['All', ['shop'], false, 'Published'],
    ['All', ['*'], false, 'Published'],
    ['All', ['headgate'], true, 'NotAllowed'],
    ['All', [], true, 'NotAllowed'],
    ['Selector', ['shop'], true, 'Published'],
    ['Selector', ['shop'], false, 'NoLabels'],
    ['Selector', ['headgate'], false, 'NotAllowed'],
  ])(
    'a model with from %s is, if the listed namespaces are %s and labels are readable (%s), %s',
    (from, publishingNamespaces, hasNamespaceLabels, expected) => {
      expect(publishingOf(model(from), { publishingNamespaces, hasNamespaceLabels })).toBe(expected)
    },
  )

  test.each<['Same' | 'All' | 'Selector', Publishing, string[], Allowed]>([
    ['Same', 'Private', [], ['shop']],
    ['All', 'Published', [], '*'],
    ['All', 'NotAllowed', [], ['shop']],
    ['Selector', 'Published', ['z', 'a', 'shop'], ['a', 'shop', 'z']],
    ['Selector', 'Published', [], ['shop']],
    ['Selector', 'NoLabels', ['z'], ['shop']],
  ])('a model with from %s that is %s and selects %s serves %s', (from, publishing, selected, expected) => {
    expect(allowedNamespaces(model(from), publishing, selected)).toEqual(expected)
  })

  test.each<[Allowed, Allowed, boolean]>([
    ['*', ['shop'], true],
    ['*', '*', false],
    [['shop'], '*', false],
    [['a', 'shop'], ['shop'], true],
    [['shop'], ['a', 'shop'], false],
    [['a', 'shop'], ['b', 'shop'], true],
  ])('an edit from %s to %s takes the model away from a namespace: %s', (before, after, expected) => {
    expect(isNarrower(after, before)).toBe(expected)
  })
})
