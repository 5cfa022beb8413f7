/** Settings: the person, the ways to sign in, the sessions, the data. */
import type { ReactNode } from 'react'
import type { Me } from '../../server/page-data/people.ts'
import { Confirmation } from '../components/confirmation.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { Page } from '../components/page.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { useMe } from '../queries.ts'
import { DeleteAccount } from './delete-account.tsx'
import { Password } from './password.tsx'
import { Profile } from './profile.tsx'
import { Providers } from './providers.tsx'
import { Section, Sections } from './section.tsx'
import { Sessions } from './sessions.tsx'
import { TwoFactor } from './two-factor.tsx'
import { YourData } from './your-data.tsx'

export function Settings(): ReactNode {
  const { data, error, isFetching, refetch } = useMe()
  return (
    <Page name="Settings">
      {data && <SettingsOf me={data} />}
      {!data && error && <LoadProblem what="Your settings" error={error} isBusy={isFetching} again={() => void refetch()} />}
      {!data && !error && (
        <Loading>
          <Sections>
            {['Profile', 'Password', 'Sign-in', 'Two-factor', 'Sessions'].map((title) => (
              <Section key={title} id={`loading-${title}`} title={title} about="">
                <Bar size="tall" />
              </Section>
            ))}
          </Sections>
        </Loading>
      )}
    </Page>
  )
}

function SettingsOf({ me: { person, installation } }: { readonly me: Me }): ReactNode {
  return (
    <Confirmation>
      <Sections>
        <Profile person={person} />
        {installation.hasPasswords && <Password person={person} />}
        <Providers hasPassword={person.hasPassword} />
        <TwoFactor person={person} />
        <Sessions />
        <YourData />
        <DeleteAccount email={person.email} />
      </Sections>
    </Confirmation>
  )
}
