/** Sessions: where the person is signed in, and the end of each. */
import { useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Sessions as SessionList } from '../../server/page-data/people.ts'
import { agentName } from '../agent.ts'
import { Refused } from '../api.ts'
import { ChangeButton } from '../components/button.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { Row, Rows } from '../components/rows.tsx'
import { useAction } from '../components/use-action.ts'
import { useSessions } from '../queries.ts'
import { useSurroundings } from '../surroundings.ts'
import { recently } from '../times.ts'
import { focusSection, Section } from './section.tsx'

type Session = SessionList['sessions'][number]

export function Sessions(): ReactNode {
  const { data, error, isFetching, refetch } = useSessions()
  return (
    <Section id="sessions" title="Sessions" about="Where you are signed in.">
      {data && (
        <Rows>
          {data.sessions.map((session) => (
            <SessionRow key={session.id} session={session} />
          ))}
          {data.sessions.some(({ isCurrent }) => !isCurrent) && <EndOthers />}
        </Rows>
      )}
      {!data && error && <LoadProblem what="The sessions" error={error} isBusy={isFetching} again={() => void refetch()} />}
      {!data && !error && (
        <Loading>
          <Bar />
          <Bar size="short" />
        </Loading>
      )}
    </Section>
  )
}

function SessionRow({ session }: { readonly session: Session }): ReactNode {
  const { id, isCurrent, agent, address, lastUsedAt } = session
  const { api } = useSurroundings()
  const queries = useQueryClient()
  const name = agentName(agent)
  const { isBusy, error, perform } = useAction('Ending a session', async () => {
    await api.endSession(id).catch(ignoreEnded)
    focusSection('sessions')
    await queries.invalidateQueries({ queryKey: ['sessions'] })
  })
  if (isCurrent) return <Row title={name} text={`This browser · ${address}`} end={<span className="state ok">Now</span>} />
  const lastUsed = recently(new Date(lastUsedAt), new Date())
  return (
    <Row
      title={name}
      text={`${lastUsed} · ${address}`}
      error={error}
      button={
        <ChangeButton look="compact" label={`End session: ${name}, ${lastUsed}`} isBusy={isBusy} onClick={() => perform()}>
          End
        </ChangeButton>
      }
    />
  )
}

/** The session has ended already: that is what was asked for. */
function ignoreEnded(error: unknown): void {
  if (!(error instanceof Refused) || error.code !== 'not-found') throw error
}

function EndOthers(): ReactNode {
  const { api } = useSurroundings()
  const queries = useQueryClient()
  const { isBusy, error, perform } = useAction('Ending all other sessions', async () => {
    await api.endOtherSessions()
    focusSection('sessions')
    await queries.invalidateQueries({ queryKey: ['sessions'] })
  })
  return (
    <Row
      title="All other sessions"
      text="This browser stays signed in."
      error={error}
      button={
        <ChangeButton look="compact" isBusy={isBusy} onClick={() => perform()}>
          End all others
        </ChangeButton>
      }
    />
  )
}
