/** Profile: the name of the person, and the address. */
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { Me } from '../../server/page-data/people.ts'
import { emailError, isSameEmail } from '../checks.ts'
import { ChangeButton } from '../components/button.tsx'
import { Field } from '../components/field.tsx'
import { Outcome } from '../components/outcome.tsx'
import { Problem } from '../components/problem.tsx'
import { useForm } from '../components/use-form.ts'
import { useSurroundings } from '../surroundings.ts'
import styles from './section.module.css'
import { Section } from './section.tsx'

export function Profile({ person }: Pick<Me, 'person'>): ReactNode {
  return (
    <Section id="profile" title="Profile" about="How this page greets you, and where your mail goes.">
      <NameForm person={person} />
      <EmailForm person={person} key={person.email} />
    </Section>
  )
}

function NameForm({ person }: Pick<Me, 'person'>): ReactNode {
  const { api, drafts } = useSurroundings()
  const queries = useQueryClient()
  const { form, field, action } = useForm({
    purpose: 'Changing your name',
    initial: { name: drafts.read(person.id, 'name')['name'] ?? person.name },
    checks: {},
    onChange: (values) => drafts.keep(person.id, 'name', values.name === person.name ? {} : values),
    submit: async ({ name }) => {
      queries.setQueryData(['me'], await api.rename(name.trim()))
      drafts.keep(person.id, 'name', {})
    },
  })
  return (
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
  )
}

function EmailForm({ person }: Pick<Me, 'person'>): ReactNode {
  const { api, drafts } = useSurroundings()
  const [sentTo, setSentTo] = useState('')
  const { form, field, action } = useForm({
    purpose: 'Changing your email',
    initial: { email: drafts.read(person.id, 'email')['email'] ?? person.email },
    checks: {
      email: (email) => (isSameEmail(email, person.email) ? 'This is your email already. Write the new one.' : emailError(email)),
    },
    onChange: (values) => {
      setSentTo('')
      drafts.keep(person.id, 'email', isSameEmail(values.email, person.email) ? {} : values)
    },
    submit: async ({ email }) => {
      await api.changeEmail(email.trim())
      drafts.keep(person.id, 'email', {})
      setSentTo(email.trim())
    },
  })
  return (
    <form className="form" {...form}>
      <Field
        label="Email"
        type="email"
        autoComplete="email"
        hint="A new address counts once you open the link that we send there, signed in. The old one gets a notice."
        {...field('email')}
      />
      <Problem error={action.problem} />
      <div>
        <div className="actions">
          <ChangeButton type="submit" isBusy={action.isBusy}>
            Change email
          </ChangeButton>
        </div>
        <div className={styles.message} role="status">
          {sentTo !== '' && (
            <div className="banner">
              <div>
                <b>Open the link that we sent to {sentTo}</b>
                <p>Until then, {person.email} stays your email. No mail? The new address may belong to another account.</p>
              </div>
            </div>
          )}
        </div>
      </div>
    </form>
  )
}
