/** Password: change it, or set the first one. */
import { useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Me } from '../../server/page-data/people.ts'
import { missing, newPasswordError, PASSWORD_LENGTH } from '../checks.ts'
import { ChangeButton } from '../components/button.tsx'
import { PasswordField } from '../components/field.tsx'
import { Outcome } from '../components/outcome.tsx'
import { Problem } from '../components/problem.tsx'
import { useForm } from '../components/use-form.ts'
import { UserName } from '../components/user-name.tsx'
import { useSurroundings } from '../surroundings.ts'
import { Section } from './section.tsx'

const EMPTY = { current: '', next: '' }

export function Password({ person }: Pick<Me, 'person'>): ReactNode {
  const { api } = useSurroundings()
  const queries = useQueryClient()
  const { hasPassword } = person
  const { form, field, action, refill } = useForm({
    purpose: hasPassword ? 'Changing your password' : 'Setting a password',
    initial: EMPTY,
    checks: { ...(hasPassword && { current: missing('current password') }), next: newPasswordError },
    secret: 'current',
    submit: async ({ current, next }) => {
      await api.changePassword(next, hasPassword ? current : undefined)
      refill(EMPTY)
      await queries.invalidateQueries()
    },
  })
  const about = hasPassword
    ? 'A new one ends all other sessions. API keys go on.'
    : 'You sign in through a provider. A password is one more way to sign in.'
  return (
    <Section id="password" title="Password" about={about}>
      <form className="form" {...form}>
        <UserName email={person.email} />
        {hasPassword && <PasswordField label="Current password" autoComplete="current-password" {...field('current')} />}
        <PasswordField
          label="New password"
          autoComplete="new-password"
          hint={`At least ${PASSWORD_LENGTH.min} characters.`}
          {...field('next')}
        />
        <Problem error={action.problem} />
        <div className="actions">
          <ChangeButton type="submit" isBusy={action.isBusy}>
            {hasPassword ? 'Change password' : 'Set password'}
          </ChangeButton>
          <Outcome text={action.isDone ? 'Password set. All other sessions have ended' : ''} />
        </div>
      </form>
    </Section>
  )
}
