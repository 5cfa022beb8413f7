/** Profile: the name of the person. */
import { useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Me } from '../../server/page-data.ts'
import { ChangeButton } from '../components/button.tsx'
import { Field } from '../components/field.tsx'
import { Outcome } from '../components/outcome.tsx'
import { Problem } from '../components/problem.tsx'
import { useForm } from '../components/use-form.ts'
import { useSurroundings } from '../surroundings.ts'
import { Section } from './section.tsx'

export function Profile({ person }: Pick<Me, 'person'>): ReactNode {
  const { api, drafts } = useSurroundings()
  const queries = useQueryClient()
  const { form, field, action } = useForm({
    purpose: 'Changing your name',
    initial: { name: drafts.read(person.id, 'profile')['name'] ?? person.name },
    checks: {},
    onChange: (values) => drafts.keep(person.id, 'profile', values.name === person.name ? {} : values),
    submit: async ({ name }) => {
      queries.setQueryData(['me'], await api.rename(name.trim()))
      drafts.keep(person.id, 'profile', {})
    },
  })
  return (
    <Section id="profile" title="Profile" about="How this page greets you.">
      <form className="form" {...form}>
        <Field label="Name" autoComplete="name" {...field('name')} />
        <Problem error={action.problem} />
        <div className="actions">
          <ChangeButton type="submit" isBusy={action.isBusy}>
            Save
          </ChangeButton>
          <Outcome text={action.isDone ? 'Saved' : ''} />
        </div>
      </form>
    </Section>
  )
}
