import { describe, expect, test } from 'vitest'
import { account } from '../../test/support/objects.ts'
import { NO_SPEND } from '../shards/account-book.ts'
import { type Claim, type ClaimFacts, claimOf, isAccepted, MARK_ANNOTATION, REOPEN_ANNOTATION } from './claim.ts'

const UID = 'uid-2'
const FORMER = 'uid-1'

interface Annotations {
  readonly mark?: string
  readonly reopen?: string
}

function claim({ mark, reopen }: Annotations, { owner, ...facts }: Partial<ClaimFacts> & { readonly owner?: string } = {}): Claim {
  const annotations = {
    ...(mark !== undefined && { [MARK_ANNOTATION]: mark }),
    ...(reopen !== undefined && { [REOPEN_ANNOTATION]: reopen }),
  }
  const book = owner === undefined ? undefined : { name: 'acme', owner, changes: 0, ...NO_SPEND }
  const all = { installation: 'one', book, isUnreadable: false, isDamaged: false, isBroken: false, ...facts }
  return claimOf(account('acme', {}, { uid: UID, annotations }), all)
}

const marked = { mark: `one/${UID}` }
const restored = { mark: `one/${FORMER}` }
const begun = { reopen: `new-${UID}` }

describe('an Account', () => {
  test.each<[string, Claim, Annotations, Parameters<typeof claim>[1]]>([
    ['of a new name begins books', 'Open', {}, {}],
    ['owns the books that name it', 'Owned', marked, { owner: UID }],
    ['is refused with the books of another one', 'NameUsed', {}, { owner: FORMER }],
    ['takes over the books of the one that it succeeds', 'Inherit', { reopen: FORMER }, { owner: FORMER }],
    ['takes over none with the uid of yet another one', 'NameUsed', { reopen: 'uid-0' }, { owner: FORMER }],
    ['that was restored finds the books of its former self', 'Inherit', restored, { owner: FORMER }],
    ['that was restored does not get books that have another owner since', 'NameUsed', restored, { owner: 'uid-3' }],
    ['that had books begins no new ones', 'Missing', marked, {}],
    ['that was restored without its books begins no new ones', 'Missing', restored, {}],
    ['begins missing books if an administrator says so', 'Open', { ...marked, ...begun }, {}],
    ['begins no missing books by the uid of another one', 'Missing', { ...marked, reopen: `new-${FORMER}` }, {}],
    ['of another installation is left alone', 'Foreign', { mark: `two/${UID}` }, {}],
    ['of another installation is left alone, whatever the books say', 'Foreign', { mark: `two/${UID}` }, { owner: UID }],
    ['whose books a newer operator wrote waits for it', 'Unreadable', {}, { isUnreadable: true }],
    ['whose books a newer operator wrote begins none, whatever an administrator says', 'Unreadable', begun, { isUnreadable: true }],
    ['whose own books a newer operator wrote waits too', 'Unreadable', marked, { isUnreadable: true, owner: UID }],
    ['of a name that a damaged Secret may have is not new', 'Damaged', {}, { isDamaged: true }],
    ['that was accepted waits for books in a damaged Secret', 'Damaged', marked, { isDamaged: true }],
    ['goes on without a damaged Secret if an administrator says so', 'Open', { ...marked, ...begun }, { isDamaged: true }],
    ['whose books may lack something waits', 'Damaged', marked, { owner: UID, isBroken: true }],
    ['goes on with what is left if an administrator says so', 'Owned', { ...marked, ...begun }, { owner: UID, isBroken: true }],
  ])('%s', (_, expected, annotations, facts) => {
    expect(claim(annotations, facts)).toBe(expected)
  })

  test('works only with books of its own, or with books that are about to be', () => {
    const all: readonly Claim[] = ['Owned', 'Open', 'Inherit', 'NameUsed', 'Missing', 'Damaged', 'Foreign', 'Unreadable']
    expect(all.filter(isAccepted)).toEqual(['Owned', 'Open', 'Inherit'])
  })
})
