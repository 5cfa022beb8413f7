/** How many gateways have acknowledged the newest change: a square each, and the count in words. */
import type { ReactNode } from 'react'
import { Gate } from './gate.tsx'
import styles from './proof.module.css'

/** From this number of gateways on, only the words. */
const MAX_SQUARES = 6

export interface ProofProps {
  readonly ready: number
  readonly total: number
  /** Whether calls pass on gateways that have acknowledged, and on the others. */
  readonly isOpen: { readonly ready: boolean; readonly others: boolean }
  /** `Revoked on 2/3 gateways` */
  readonly words: string
  /** What follows from it. */
  readonly note?: string
}

export function Proof({ ready, total, isOpen, words, note }: ProofProps): ReactNode {
  const gates = total > MAX_SQUARES ? [] : Array.from({ length: total }, (_, index) => (index < ready ? isOpen.ready : isOpen.others))
  return (
    <div className={styles.proof}>
      {gates.length > 0 && (
        <span className={styles.gates}>
          {gates.map((isGateOpen, index) => (
            <Gate isOpen={isGateOpen} key={index} />
          ))}
        </span>
      )}
      <span>
        <b>{note === undefined ? words : `${words}.`}</b> {note !== undefined && <span className="muted">{note}</span>}
      </span>
      <span className="visually-hidden" role="status">
        {ready === 0 || ready === total ? words : '' /* every count in between would only be noise */}
      </span>
    </div>
  )
}
