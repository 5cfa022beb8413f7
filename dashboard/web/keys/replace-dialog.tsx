/** Replace: another value for the same key. The former one can go on for a while. */
import { type ReactNode, useState } from 'react'
import type { KeyView, NewKey as Issued } from '../../server/page-data/keys.ts'
import { ChangeButton } from '../components/button.tsx'
import { Choice } from '../components/choice.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Problem } from '../components/problem.tsx'
import { useAction } from '../components/use-action.ts'
import { useSurroundings } from '../surroundings.ts'
import { dayAndTime } from '../times.ts'
import { useKeptKey } from './use-key-change.ts'

const HOUR_SECONDS = 3600
const DAY_SECONDS = 86_400
const SECOND_MS = 1000

export interface ReplaceDialogProps {
  readonly view: KeyView
  readonly issued: (made: Issued) => void
  readonly close: () => void
}

export function ReplaceDialog({ view, issued, close }: ReplaceDialogProps): ReactNode {
  const { api } = useSurroundings()
  const keep = useKeptKey(view.id)
  const [overlap, setOverlap] = useState(DAY_SECONDS)
  const [openedAt] = useState(() => Date.now())
  const { isBusy, error, perform } = useAction('Replacing a key', async () => {
    const made = await api.replaceKey(view.id, overlap)
    keep(made.key)
    issued(made)
  })
  const choice = (seconds: number, words: string, hint?: string): ReactNode => (
    <Choice
      type="radio"
      name="overlap"
      isChosen={overlap === seconds}
      onChange={() => setOverlap(seconds)}
      {...(hint !== undefined && { hint })}
    >
      {words}
    </Choice>
  )
  const button = (
    <ChangeButton look="primary" isBusy={isBusy} onClick={() => perform()}>
      Replace
    </ChangeButton>
  )
  // while the request is on its way the dialog stays: the answer has a value that is shown only once
  const leave = (): void => (isBusy ? undefined : close())
  return (
    <Dialog title={`Replace ${view.name}`} action={button} onClose={leave}>
      <p>You get a new value, shown once. Name, limits, budget and history stay.</p>
      <fieldset className="field">
        <legend>The old value goes on for</legend>
        {choice(0, 'Not at all', 'If it leaked. Calls with it answer 401 at once')}
        {choice(HOUR_SECONDS, '1 hour')}
        {choice(
          DAY_SECONDS,
          '24 hours',
          `Until ${dayAndTime(new Date(openedAt + DAY_SECONDS * SECOND_MS))}. Both spend from the same budget`,
        )}
      </fieldset>
      <Problem error={error} />
    </Dialog>
  )
}
