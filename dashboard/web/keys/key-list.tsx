/** The table of keys. What is searched stays in this component: a person may paste a whole key, which belongs into no address and no storage. */
import { type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import type { BudgetView, KeyView, LimitView, PlanView } from '../../server/page-data/keys.ts'
import { windowWords } from '../budget-words.ts'
import { Choice } from '../components/choice.tsx'
import { Empty } from '../components/empty.tsx'
import { Gauge } from '../components/gauge.tsx'
import { Bar } from '../components/loading.tsx'
import { Source } from '../components/source.tsx'
import { State } from '../components/state.tsx'
import { Cell, RowHead, Sub, Table, TableRow } from '../components/table.tsx'
import { shortMoney, money, whole } from '../money.ts'
import { stateWords } from './key-state.ts'
import { expiryWords, lastUsedWords, modelsWords, shortLimit } from './key-words.ts'
import styles from './keys-page.module.css'
import { isHidden, matches } from './search.ts'

const COLUMNS = ['Name', 'State', 'Models', 'Budget', 'Limits', 'Last used', 'Expires'].map((title) => ({ title }))

interface KeyListProps {
  readonly keys: readonly KeyView[]
  readonly plan: PlanView | undefined
}

export function KeyList({ keys, plan }: KeyListProps): ReactNode {
  const [words, setWords] = useState('')
  const [isRevokedShown, setIsRevokedShown] = useState(false)
  const candidates = keys.filter((key) => isRevokedShown || !isHidden(key))
  const shown = candidates.filter((key) => matches(key, words))
  return (
    <section className={styles.list} aria-label="Keys">
      <Toolbar
        {...{ words, setWords, isRevokedShown, setIsRevokedShown }}
        revoked={keys.filter(isHidden).length}
        count={countWords(shown.length, candidates.length)}
      />
      {shown.length > 0 && (
        <Table label="API keys" columns={COLUMNS} look="stack" hasRowLinks>
          {shown.map((key) => (
            <KeyRow view={key} plan={plan} key={key.id} />
          ))}
        </Table>
      )}
      {shown.length === 0 && <NoResult {...{ words, setWords, isRevokedShown, setIsRevokedShown }} />}
    </section>
  )
}

function countWords(shown: number, all: number): string {
  const keys = all === 1 ? 'key' : 'keys'
  return shown === all ? `${all} ${keys}` : `${shown} of ${all} ${keys}`
}

interface SearchState {
  readonly words: string
  readonly setWords: (words: string) => void
  readonly isRevokedShown: boolean
  readonly setIsRevokedShown: (isShown: boolean) => void
}

function Toolbar({ words, setWords, isRevokedShown, setIsRevokedShown, revoked, count }: SearchState & ToolbarProps): ReactNode {
  return (
    <div className={styles.toolbar}>
      <div className={styles.search}>
        <input
          className="input"
          type="search"
          aria-label="Search keys"
          placeholder="Search by name or prefix"
          autoComplete="off"
          spellCheck={false}
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
      </div>
      <div className="actions">
        {revoked > 0 && (
          <Choice type="checkbox" name="revoked" isChosen={isRevokedShown} onChange={setIsRevokedShown}>
            Show revoked ({revoked})
          </Choice>
        )}
        <span className="small muted" role="status">
          {count}
        </span>
      </div>
    </div>
  )
}

interface ToolbarProps {
  /** How many keys are revoked. */
  readonly revoked: number
  /** `2 of 7 keys` */
  readonly count: string
}

function NoResult({ words, setWords, isRevokedShown, setIsRevokedShown }: SearchState): ReactNode {
  if (words.trim() === '') return <Empty isPlain title="All keys are revoked" text="Tick “Show revoked” to see them." />
  return (
    <Empty
      isPlain
      title={`No key matches “${words.trim()}”`}
      text={`Names and the visible part of keys are searched.${isRevokedShown ? '' : ' Revoked keys are hidden.'}`}
    >
      <button className="button" type="button" onClick={() => setWords('')}>
        Clear search
      </button>
      {!isRevokedShown && (
        <button className="button quiet" type="button" onClick={() => setIsRevokedShown(true)}>
          Search revoked too
        </button>
      )}
    </Empty>
  )
}

function KeyRow({ view, plan }: { readonly view: KeyView; readonly plan: PlanView | undefined }): ReactNode {
  const now = new Date()
  const { look, word, note } = stateWords(view, now)
  const { id, name, hint, budgets, limits, lastUsedAt, expiresAt } = view
  return (
    <TableRow>
      <RowHead>
        <Link href={`/keys/${encodeURIComponent(id)}`}>{name}</Link>
        <Sub isMono>{hint}</Sub>
      </RowHead>
      <Cell label="State">
        <State look={look} word={word} />
        {note !== undefined && <Sub>{note}</Sub>}
      </Cell>
      <Cell label="Models" hasNames>
        {modelsWords(view, plan)}
      </Cell>
      <Cell label="Budget">
        <TightestBudget budgets={budgets} currency={plan?.currency} />
      </Cell>
      <Cell label="Limits">
        <ShortLimits limits={limits} />
      </Cell>
      <Cell label="Last used">
        {lastUsedAt === undefined ? <Faint text="Never used" /> : <span className="nowrap">{lastUsedWords(lastUsedAt, now)}</span>}
      </Cell>
      <Cell label="Expires">
        {expiresAt === undefined ? <Faint text="Never" /> : <span className="nowrap">{expiryWords(expiresAt)}</span>}
      </Cell>
    </TableRow>
  )
}

function Faint({ text }: { readonly text: string }): ReactNode {
  return <span className="faint">{text}</span>
}

interface TightestBudgetProps {
  readonly budgets: readonly BudgetView[]
  readonly currency: string | undefined
}

/** The budget of this key that is used up first. The page of the key has all. */
function TightestBudget({ budgets, currency }: TightestBudgetProps): ReactNode {
  const [tightest] = budgets.filter(({ isShared }) => !isShared).toSorted((a, b) => (b.percent ?? 0) - (a.percent ?? 0))
  if (tightest === undefined) return <Faint text="None of its own" />
  const { unit, used = '0', amount, window, percent = 0, owner } = tightest
  const isMoney = unit === 'Currency'
  return (
    <>
      <span className="nowrap">
        {isMoney ? money(used, currency) : whole(used)}{' '}
        <span className="muted">
          of {isMoney ? shortMoney(amount, currency) : `${whole(amount)} tokens`} {windowWords(window)}
        </span>{' '}
        {owner !== 'key' && <Source owner={owner} />}
      </span>
      <Gauge percent={percent} />
    </>
  )
}

function ShortLimits({ limits }: { readonly limits: readonly LimitView[] }): ReactNode {
  const shown = limits.filter(({ limit }) => limit !== 'maxConcurrentRequests')
  if (shown.length === 0) return <Faint text="None" />
  return shown.map(({ limit, value, owner }, index) => {
    const words = (
      <span className="nowrap">
        {shortLimit(limit, value)} {owner !== 'key' && <Source owner={owner} />}
      </span>
    )
    return index === 0 ? <span key={limit}>{words}</span> : <Sub key={limit}>{words}</Sub>
  })
}

/** The table before its data: the columns are there at once. */
export function LoadingKeys(): ReactNode {
  return (
    <Table label="API keys" columns={COLUMNS} look="stack" isBusy>
      {['first', 'second', 'third'].map((row) => (
        <TableRow key={row}>
          <RowHead>
            <Bar />
            <Bar size="short" />
          </RowHead>
          {COLUMNS.slice(1).map(({ title }) => (
            <Cell key={title}>
              <Bar size="short" />
            </Cell>
          ))}
        </TableRow>
      ))}
    </Table>
  )
}
