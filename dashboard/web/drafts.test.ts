import { expect, it } from 'vitest'
import { createDrafts } from './drafts.ts'

/** The storage of a tab. */
function tab(entries: ReadonlyArray<readonly [string, string]> = []): Storage {
  const map = new Map(entries)
  return {
    get length() {
      return map.size
    },
    clear: () => map.clear(),
    getItem: (key) => map.get(key) ?? null,
    key: (index) => [...map.keys()][index] ?? null,
    removeItem: (key) => void map.delete(key),
    setItem: (key, value) => void map.set(key, value),
  }
}

it('what was typed is there again after a sign-in in the same tab', () => {
  const storage = tab()
  createDrafts(storage).keep('p1', 'name', { name: 'Maya' })
  expect(createDrafts(storage).read('p1', 'name')).toEqual({ name: 'Maya' })
})

it('another person in the same tab does not see the draft', () => {
  const drafts = createDrafts(tab())
  drafts.keep('p1', 'name', { name: 'Maya' })
  expect([drafts.read('p2', 'name'), drafts.read('p1', 'email')]).toEqual([{}, {}])
})

it('a saved form leaves no draft', () => {
  const storage = tab()
  const drafts = createDrafts(storage)
  drafts.keep('p1', 'name', { name: 'Maya' })
  drafts.keep('p1', 'name', {})
  expect(storage.length).toBe(0)
})

it('signing out forgets all drafts, and nothing else', () => {
  const storage = tab([['other', 'kept']])
  const drafts = createDrafts(storage)
  drafts.keep('p1', 'name', { name: 'Maya' })
  drafts.keep('p1', 'email', { email: 'm@x.example' })
  drafts.forget()
  expect([storage.length, storage.getItem('other')]).toEqual([1, 'kept'])
})

it.each(['', 'no JSON', 'null', '7', '["a"]', '{"name":7}'])('a stored draft of %j is not a draft', (text) => {
  const { name } = createDrafts(tab([['headgate.draft.p1.name', text]])).read('p1', 'name')
  expect(name).toBeUndefined()
})

it('a browser without storage, or with full storage, has forms without drafts', () => {
  const full: Storage = Object.assign(tab(), {
    setItem: () => {
      throw new DOMException('full', 'QuotaExceededError')
    },
  })
  for (const storage of [undefined, full]) {
    const drafts = createDrafts(storage)
    drafts.keep('p1', 'name', { name: 'Maya' })
    drafts.forget()
    expect(drafts.read('p1', 'name')).toEqual({})
  }
})
