/** Tokens by model, and requests by outcome. The sums are those of the figures. */
import type { ReactNode } from 'react'
import type { UsageRow } from '../../server/page-data/usage.ts'
import { PageSection } from '../components/page-section.tsx'
import { Cell, RowHead, Table, TableRow } from '../components/table.tsx'
import { share } from '../counts.ts'
import type { Money } from '../micros.ts'
import { whole } from '../money.ts'
import { type Outcome, outcomesOf } from './outcomes.ts'
import { modelTotals, type UsageTotals } from './usage-sums.ts'
import { modelName } from './usage-words.ts'

const number = (count: bigint): string => (count === 0n ? '–' : whole(String(count)))

interface ModelTableProps {
  readonly rows: readonly UsageRow[]
  readonly totals: UsageTotals
  readonly money: Money
}

export function ModelTable({ rows, totals, money }: ModelTableProps): ReactNode {
  const models = modelTotals(rows)
  if (models.length === 0) return null
  const columns = [{ title: 'Model' }, ...['In', 'Of these cached', 'Out', money.currency].map((title) => ({ title, isNumber: true }))]
  const cells = (sums: UsageTotals): ReactNode => <ModelCells sums={sums} money={money} />
  const foot = (
    <TableRow>
      <RowHead>All</RowHead>
      {cells(totals)}
    </TableRow>
  )
  return (
    <PageSection title="Tokens, by model">
      <Table label="Tokens, by model" columns={columns} look="stack" foot={foot}>
        {models.map((sums) => (
          <TableRow key={sums.model}>
            <RowHead>{modelName(sums.model)}</RowHead>
            {cells(sums)}
          </TableRow>
        ))}
      </Table>
    </PageSection>
  )
}

function ModelCells({ sums, money }: { readonly sums: UsageTotals; readonly money: Money }): ReactNode {
  const { input, cached, output, spend, hasEstimates } = sums
  return (
    <>
      <Cell label="In" isNumber>
        {number(input)}
      </Cell>
      <Cell label="Of these cached" isNumber>
        {number(cached)}
      </Cell>
      <Cell label="Out" isNumber>
        {number(output)}
      </Cell>
      <Cell label={money.currency} isNumber>
        {hasEstimates && <span title="Part of it is estimated">≈ </span>}
        {money.cell(spend)}
      </Cell>
    </>
  )
}

export function OutcomeTable({ rows, totals }: Omit<ModelTableProps, 'money'>): ReactNode {
  const { calls } = totals
  const columns = [{ title: 'Outcome' }, ...['Requests', 'Share'].map((title) => ({ title, isNumber: true }))]
  const row = ({ name, count }: Outcome): ReactNode => (
    <TableRow key={name}>
      <RowHead>{name}</RowHead>
      <Cell label="Requests" isNumber>
        {whole(String(count))}
      </Cell>
      <Cell label="Share" isNumber>
        {share(count, calls, 2)}
      </Cell>
    </TableRow>
  )
  return (
    <PageSection title="Requests, by outcome" fact="Refused calls cost nothing">
      <Table label="Requests, by outcome" columns={columns} look="figures" foot={row({ name: 'All', count: calls })}>
        {outcomesOf(rows, totals).map(row)}
      </Table>
    </PageSection>
  )
}
