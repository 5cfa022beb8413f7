/** Allowed models: all of the plan, or ticks with prices. */
import { type ReactNode, useId, useState } from 'react'
import type { ModelView, PlanView } from '../../server/page-data/keys.ts'
import { priceColumns, priceWords } from '../billing/plan-words.ts'
import { Choice } from '../components/choice.tsx'
import { Help } from '../components/field.tsx'
import type { Form } from '../components/use-form.ts'
import { type KeyField, modelsIn, modelsText } from './key-form.ts'
import styles from './model-choice.module.css'

/** From this number of models on, a field filters them. */
const FILTER_FROM = 12

export interface ModelChoiceProps extends ReturnType<Form<KeyField>['field']> {
  readonly plan: PlanView
}

export function ModelChoice({ name, value, error, onChange, plan }: ModelChoiceProps): ReactNode {
  const help = useId()
  const isAll = modelsIn(value).includes('*')
  const [ticked, setTicked] = useState<readonly string[]>(isAll ? [] : modelsIn(value))
  const tick = (model: string, isTicked: boolean): void => {
    const next = isTicked ? [...ticked, model] : ticked.filter((one) => one !== model)
    setTicked(next)
    onChange(modelsText(next))
  }
  const { length } = plan.models
  return (
    <fieldset className="field" aria-describedby={error === undefined ? undefined : help}>
      <legend>Allowed models</legend>
      <Choice
        type="radio"
        name={name}
        isChosen={isAll}
        onChange={() => onChange('*')}
        hint={length === 0 ? 'None today: ask your administrator for models' : `${length} today, and those that join the plan later`}
      >
        All of the plan
      </Choice>
      <Choice type="radio" name={name} isChosen={!isAll} onChange={() => onChange(modelsText(ticked))}>
        Only these
      </Choice>
      {!isAll && (
        <Picks models={offered(plan.models, ticked)} currency={plan.currency} {...{ name, ticked, tick }} isWrong={error !== undefined} />
      )}
      <Help id={help} error={error} />
    </fieldset>
  )
}

/** Models of the plan, then entries of the key that the plan does not have. */
function offered(models: readonly ModelView[], ticked: readonly string[]): readonly ModelView[] {
  const names = new Set(models.map(({ name }) => name))
  return [...models, ...ticked.filter((name) => !names.has(name)).map((name) => ({ name }))]
}

interface PicksProps {
  readonly models: readonly ModelView[]
  readonly currency: string
  readonly name: string
  readonly ticked: readonly string[]
  readonly tick: (model: string, isTicked: boolean) => void
  readonly isWrong: boolean
}

function Picks({ models, currency, name, ticked, tick, isWrong }: PicksProps): ReactNode {
  const [words, setWords] = useState('')
  const prices = priceColumns(models)
  const shown = models.filter((model) => model.name.toLowerCase().includes(words.trim().toLowerCase()))
  return (
    <>
      {models.length >= FILTER_FROM && (
        <input
          className="input"
          type="search"
          aria-label="Filter models"
          placeholder="Filter models"
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
      )}
      <div className={isWrong ? `${styles.pick} ${styles.wrong}` : styles.pick}>
        <table>
          <caption className="visually-hidden">Models with their prices in {currency} per million tokens</caption>
          <thead>
            <tr>
              <th scope="col">{currency} per million tokens</th>
              {prices.map(({ title }) => (
                <th scope="col" key={title}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ name: model, price }) => (
              <tr key={model}>
                <th scope="row">
                  <Choice
                    type="checkbox"
                    name={`${name}-tick`}
                    isChosen={ticked.includes(model)}
                    onChange={(isTicked) => tick(model, isTicked)}
                  >
                    {model}
                  </Choice>
                </th>
                {prices.map(({ title, amountOf }) => (
                  <td key={title}>{priceWords(price && amountOf(price))}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}
