/** Sign-in: the providers, linked or not. The last way to sign in stays. */
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import type { LinkedProviders } from '../../server/page-data/people.ts'
import { ChangeButton } from '../components/button.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { Row, Rows } from '../components/rows.tsx'
import { useAction } from '../components/use-action.ts'
import { useProviders } from '../queries.ts'
import { useSurroundings } from '../surroundings.ts'
import { day } from '../times.ts'
import { linkOutcome } from './link-outcome.ts'
import { focusSection, Section } from './section.tsx'

type LinkedProvider = LinkedProviders['providers'][number]

export function Providers({ hasPassword }: { readonly hasPassword: boolean }): ReactNode {
  const { data, error, isFetching, refetch } = useProviders()
  const linked = data?.providers.filter(({ isLinked }) => isLinked) ?? []
  return (
    <Section id="sign-in" title="Sign-in" about="At least one way must stay.">
      {data && <LinkOutcome providers={data.providers} />}
      {data && (
        <Rows>
          {data.providers.map((provider) => (
            <ProviderRow key={provider.id} provider={provider} isOnlyWay={linked.length === 1 && !hasPassword} />
          ))}
          {data.providers.length === 0 && <Row title="No providers" text="People sign in here with email and password." />}
        </Rows>
      )}
      {!data && error && <LoadProblem what="The providers" error={error} isBusy={isFetching} again={() => void refetch()} />}
      {!data && !error && (
        <Loading>
          <Bar />
          <Bar size="short" />
        </Loading>
      )}
    </Section>
  )
}

/** What the way to the provider and back has led to. */
function LinkOutcome({ providers }: LinkedProviders): ReactNode {
  const [outcome] = useState(() => linkOutcome(new URLSearchParams(location.search)))
  useEffect(() => {
    if (outcome === undefined) return
    history.replaceState(history.state, '', location.pathname) // a reload does not say it again
    focusSection('sign-in')
  }, [outcome])
  if (outcome === undefined) return null
  const name = providers.find(({ id }) => id === outcome.provider)?.name ?? 'The provider'
  return (
    <div
      className={outcome.problem === undefined ? 'banner ok' : 'banner danger'}
      role={outcome.problem === undefined ? 'status' : 'alert'}
    >
      <div>
        <b>{outcome.problem === undefined ? `${name} is linked` : `${name} was not linked`}</b>
        {outcome.problem !== undefined && <p>{outcome.problem}</p>}
      </div>
    </div>
  )
}

function ProviderRow({ provider, isOnlyWay }: { readonly provider: LinkedProvider; readonly isOnlyWay: boolean }): ReactNode {
  const { id, name, isLinked, linkedAt } = provider
  const { api, leave } = useSurroundings()
  const queries = useQueryClient()
  const link = useAction(`Linking ${name}`, async () => leave((await api.link(id)).url))
  const unlink = useAction(`Unlinking ${name}`, async () => {
    await api.unlink(id)
    await queries.invalidateQueries({ queryKey: ['providers'] })
  })
  if (!isLinked)
    return (
      <Row
        title={name}
        text="Not linked"
        error={link.error}
        button={
          <ChangeButton look="compact" label={`Link ${name}`} isBusy={link.isBusy} onClick={() => link.perform()}>
            Link
          </ChangeButton>
        }
      />
    )
  const since = linkedAt === undefined ? 'Linked' : `Linked since ${day(new Date(linkedAt))}`
  if (isOnlyWay) return <Row title={name} text={`${since}. This is your only way to sign in, so it stays.`} />
  return (
    <Row
      title={name}
      text={since}
      error={unlink.error}
      button={
        <ChangeButton look="compact" label={`Unlink ${name}`} isBusy={unlink.isBusy} onClick={() => unlink.perform()}>
          Unlink
        </ChangeButton>
      }
    />
  )
}
