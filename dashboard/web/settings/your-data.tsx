/** Your data: all that is stored about the person, as a file. */
import type { ReactNode } from 'react'
import { Button } from '../components/button.tsx'
import { Outcome } from '../components/outcome.tsx'
import { Problem } from '../components/problem.tsx'
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

/** By `fetch` and not by a link: a link would save a refusal as the file. */
function saveAs(name: string, content: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000) // the browser reads the content after the click
}
