/** The ledger: every movement with the balance after it, newest first, and payments that are not counted yet above. */
import type { ReactNode } from 'react'
import type { Billing, PendingTopUp } from '../../server/page-data/billing.ts'
import { CsvLink } from '../components/csv-link.tsx'
import { PageSection } from '../components/page-section.tsx'
import { State } from '../components/state.tsx'
import { Cell, RowHead, Sub, Table, TableRow } from '../components/table.tsx'
import { shortDay } from '../days.ts'
import { microsOf, type Money } from '../micros.ts'
import { type LedgerRow, ledgerRows, ledgerSum } from './ledger-rows.ts'

interface LedgerProps {
  readonly billing: Billing
  readonly money: Money
}

export function Ledger({ billing, money }: LedgerProps): ReactNode {
  const { movements, pending = [], currency } = billing
  const rows = ledgerRows(billing)
  const columns = [
    { title: 'Date' },
    { title: 'Movement' },
    { title: `Amount, ${currency}`, isNumber: true },
    { title: `Balance, ${currency}`, isNumber: true },
  ]
  if (rows.length + pending.length === 0)
    return (
      <PageSection title="Ledger">
        <p className="muted">No movement yet. Credit and the spend of each day will be listed here.</p>
      </PageSection>
    )
  return (
    <PageSection title="Ledger" fact={<CsvLink path="/api/billing/ledger.csv" name="ledger.csv" content="the ledger" />}>
      <Table label="Ledger" columns={columns} look="figures" foot={<SumRow sum={ledgerSum(movements)} billing={billing} money={money} />}>
        {pending.map((payment, index) => (
          <PendingRow payment={payment} money={money} key={index} />
        ))}
        {rows.map((row, index) => (
          <MovementRow row={row} money={money} key={index} />
        ))}
      </Table>
    </PageSection>
  )
}

function MovementRow({ row, money }: { readonly row: LedgerRow; readonly money: Money }): ReactNode {
  return (
    <TableRow>
      <Cell>{row.date || '–'}</Cell>
      <RowHead>
        {row.title}
        {row.note !== '' && (
          <Sub>
            {row.note}
            {row.receipt && <Receipt of={row} path={row.receipt} />}
          </Sub>
        )}
      </RowHead>
      <Cell isNumber>{money.change(row.amount)}</Cell>
      <Cell isNumber>{money.cell(row.balance)}</Cell>
    </TableRow>
  )
}

function Receipt({ of, path }: { readonly of: LedgerRow; readonly path: string }): ReactNode {
  return (
    <>
      {' · '}
      <a href={path} target="_blank" rel="noreferrer" aria-label={`Receipt: ${of.title}, ${of.date}`}>
        Receipt
      </a>
    </>
  )
}

function PendingRow({ payment, money }: { readonly payment: PendingTopUp; readonly money: Money }): ReactNode {
  return (
    <TableRow>
      <Cell>{shortDay(payment.time)}</Cell>
      <RowHead>
        Top-up
        <Sub>
          {payment.method} <State look="wait" word="Pending" />
        </Sub>
      </RowHead>
      <Cell isNumber>
        <span className="muted">{money.change(microsOf(payment.amount))}</span>
      </Cell>
      <Cell isNumber>
        <span className="muted">not yet</span>
      </Cell>
    </TableRow>
  )
}

/** The sum is added up here, so that a ledger that lacks a movement does not claim to be whole. */
function SumRow({ sum, billing, money }: LedgerProps & { readonly sum: bigint }): ReactNode {
  return (
    <TableRow>
      <Cell />
      <RowHead>{sum === microsOf(billing.balance) ? 'Sum of all movements = balance' : 'Sum of all movements'}</RowHead>
      <Cell />
      <Cell isNumber>{money.cell(sum)}</Cell>
    </TableRow>
  )
}
