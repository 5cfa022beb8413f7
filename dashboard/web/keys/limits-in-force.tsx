/** The limits that hold for a key, with who sets each and why. */
import type { ReactNode } from 'react'
import type { KeyView, PlanView } from '../../server/page-data/keys.ts'
import { PageSection } from '../components/page-section.tsx'
import { Source } from '../components/source.tsx'
import { Cell, RowHead, Table, TableRow } from '../components/table.tsx'
import { limitRows } from './limit-rows.ts'

const COLUMNS = ['Limit', 'In force', 'Set by', 'Why'].map((title) => ({ title }))

export function LimitsInForce({ view, plan }: { readonly view: KeyView; readonly plan: PlanView | undefined }): ReactNode {
  return (
    <PageSection title="Limits in force" fact="The smallest of key, plan and account counts">
      <Table label="Limits in force" columns={COLUMNS} look="stack">
        {limitRows(view, plan).map(({ title, value, owner, why }) => (
          <TableRow key={title}>
            <RowHead>{title}</RowHead>
            <Cell label="In force" hasNames>
              {value}
            </Cell>
            <Cell label="Set by">{owner === undefined ? 'Nobody' : <Source owner={owner} />}</Cell>
            <Cell isWhole hasNames>
              <span className="muted">{why}</span>
            </Cell>
          </TableRow>
        ))}
      </Table>
    </PageSection>
  )
}
