/** What went wrong, in words, where the person acted. */
import type { ReactNode } from 'react'
import { Refused, Unreachable } from '../api.ts'
import { Button } from './button.tsx'

/** One or two sentences: what happened, and the way on. */
export function problemText(error: Error): string {
  if (error instanceof Unreachable) return 'The dashboard did not answer. Check that you are online, then try again.'
  if (!(error instanceof Refused)) return 'Something went wrong on this page. Reload the page, then try again.'
  if (error.code === 'internal') return 'Something went wrong on our side. Try again in a moment.'
  return error.message
}

/** A problem within a form or a section. Screen readers hear it at once. */
export function Problem({ error }: { readonly error: Error | undefined }): ReactNode {
  if (error === undefined) return null
  return (
    <div className="banner danger" role="alert">
      <div>
        <p>
          {problemText(error)} <RequestID of={error} />
        </p>
      </div>
    </div>
  )
}

interface LoadProblemProps {
  /** `The sessions`; the sentence goes on with "could not be loaded". */
  readonly what: string
  readonly error: Error
  readonly isBusy: boolean
  readonly again: () => void
}

/** Stands in place of what could not be loaded. */
export function LoadProblem({ what, error, isBusy, again }: LoadProblemProps): ReactNode {
  return (
    <div className="banner danger" role="alert">
      <div>
        <b>{what} could not be loaded</b>
        <p>
          {problemText(error)} Your keys go on working. <RequestID of={error} />
        </p>
      </div>
      <Button look="compact" isBusy={isBusy} onClick={again}>
        Try again
      </Button>
    </div>
  )
}

function RequestID({ of }: { readonly of: Error }): ReactNode {
  if (!(of instanceof Refused) || of.requestID === '' || !['internal', 'unavailable'].includes(of.code)) return null
  return (
    <>
      Request id <code>{of.requestID}</code>.
    </>
  )
}
