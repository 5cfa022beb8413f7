/** The search of the list of keys. Pure. */
import type { KeyView } from '../../server/page-data/keys.ts'

/** A whole value is longer than its hint. */
const ELLIPSIS = '…'

/** Whether the words are in the name or in the visible part of the value. A whole value finds its key too. */
export function matches({ name, hint }: Pick<KeyView, 'name' | 'hint'>, words: string): boolean {
  const wanted = words.trim().toLowerCase()
  if (wanted === '') return true
  const [start = '', end = ''] = hint.toLowerCase().split(ELLIPSIS)
  const isWholeValue = start !== '' && end !== '' && wanted.startsWith(start) && wanted.endsWith(end)
  return isWholeValue || name.toLowerCase().includes(wanted) || hint.toLowerCase().includes(wanted)
}

/** Whether the key is hidden until a person asks for revoked ones. A key that is being revoked is shown until its end is proven. */
export function isHidden({ state }: Pick<KeyView, 'state'>): boolean {
  return state === 'Revoked'
}
