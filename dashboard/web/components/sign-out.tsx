/** `Sign out`: ends the session at the server, forgets what was typed, and leaves for the sign-in page. */
import type { ReactNode } from 'react'
import { useSurroundings } from '../surroundings.ts'
import { signInPath } from '../sign-in-path.ts'
import { problemText } from './problem.tsx'
import { useAction } from './use-action.ts'

export function SignOut(): ReactNode {
  const { api, drafts, leave } = useSurroundings()
  const { isBusy, error, perform } = useAction('Signing out', async () => {
    await api.signOut()
    drafts.forget()
    leave(signInPath('signed-out'))
  })
  return (
    <>
      <button className="link" type="button" aria-busy={isBusy} onClick={() => perform()}>
        Sign out
      </button>
      {error && (
        <p className="error" role="alert">
          {problemText(error)}
        </p>
      )}
    </>
  )
}
