/** The proof of the newest change of a key. */
import type { ReactNode } from 'react'
import type { KeyView } from '../../server/page-data/keys.ts'
import { Proof } from '../components/proof.tsx'
import { proofOf } from './key-state.ts'

export interface KeyProofProps {
  readonly view: KeyView
  /** Follows the count once every gateway admits the key. */
  readonly activeNote?: string
}

export function KeyProof({ view, activeNote }: KeyProofProps): ReactNode {
  const proof = proofOf(view)
  if (proof === undefined) return null
  const isActive = view.state === 'Active' && proof.ready === proof.total
  return <Proof {...proof} {...(isActive && activeNote !== undefined && { note: activeNote })} />
}
