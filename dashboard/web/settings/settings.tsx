/** Settings: the person, the ways to sign in, the sessions, the data. */
import type { ReactNode } from 'react'
import { Confirmation } from '../components/confirmation.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { Page } from '../components/page.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { useMe } from '../queries.ts'
import { Profile } from './profile.tsx'
import { Sections } from './section.tsx'

export function Settings(): ReactNode {
  const { data, error, isFetching, refetch } = useMe()
  return (
    <Page name="Settings">
      {data !== undefined && (
        <Confirmation>
          <Sections>
            <Profile person={data.person} />
          </Sections>
        </Confirmation>
      )}
      {data === undefined && error === null && (
        <Loading>
          <Bar />
          <Bar size="tall" />
        </Loading>
      )}
      {data === undefined && error !== null && (
        <LoadProblem what="Your settings" error={error} isBusy={isFetching} again={() => void refetch()} />
      )}
    </Page>
  )
}
