/** Your data: all that is stored about the person, as a file. */
import type { ReactNode } from 'react'
import { Button } from '../components/button.tsx'
import { Outcome } from '../components/outcome.tsx'
import { Problem } from '../components/problem.tsx'
import { saveAs } from '../components/save-as.ts'
import { useAction } from '../components/use-action.ts'
import { useSurroundings } from '../surroundings.ts'
import { Section } from './section.tsx'

export function YourData(): ReactNode {
  const { api } = useSurroundings()
  const { isBusy, isDone, error, perform } = useAction('Downloading your data', async () =>
    saveAs('headgate-data.json', await api.exported()),
  )
  return (
    <Section id="your-data" title="Your data" about="What we hold about you, as one JSON file.">
      <Problem error={error} />
      <div className="actions">
        <Button isBusy={isBusy} onClick={() => perform()}>
          Download data
        </Button>
        <Outcome text={isDone ? 'Downloaded' : ''} />
      </div>
    </Section>
  )
}
