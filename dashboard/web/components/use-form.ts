/**
 * A form: each field is checked when a person leaves it after a change, and on submit; what the server refuses lands at the same field. The
 * first field with an error takes the focus, or the list of errors where the form shows one.
 */
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { Refused } from '../api.ts'
import type { FieldProps } from './field.tsx'
import { type Action, useAction } from './use-action.ts'

type Values<N extends string> = Readonly<Record<N, string>>
/** @returns what to write instead */
export type Check<N extends string = string> = (value: string, values: Values<N>) => string | undefined

export interface FormOptions<N extends string> {
  /** See useAction. */
  readonly purpose: string
  readonly initial: Values<N>
  readonly checks: Partial<Record<NoInfer<N>, Check<NoInfer<N>>>>
  /** The field with the proof of identity: the server's `wrong-credentials` lands there, unless it names a field. */
  readonly secret?: NoInfer<N>
  /** Is told of each change of the values. */
  readonly onChange?: (values: Values<NoInfer<N>>) => void
  readonly submit: (values: Values<NoInfer<N>>) => Promise<void>
}

export interface Form<N extends string> {
  readonly form: { readonly noValidate: true; readonly onSubmit: (event: FormEvent) => void; readonly ref: React.Ref<HTMLFormElement> }
  readonly field: (name: N) => Pick<FieldProps, 'name' | 'value' | 'error' | 'onChange' | 'onBlur'>
  /** `problem`: the error of the whole form, and not of a field. */
  readonly action: Pick<Action<[Values<N>]>, 'isBusy' | 'isDone'> & { readonly problem: Error | undefined }
  readonly values: Values<N>
  /** Fields with an error since the last submit, where they are two or more: the form lists them, and the list takes the focus. */
  readonly summary: readonly N[]
  /** Sets the values as if the form had just been opened. The outcome of the last submit stays. */
  readonly refill: (values: Values<N>) => void
}

export function useForm<N extends string>({ purpose, initial, checks, secret, onChange, submit }: FormOptions<N>): Form<N> {
  const [values, setValues] = useState(initial)
  const [wrong, setWrong] = useState<Partial<Record<N, string>>>({})
  const changed = useRef(new Set<N>())
  const [isSubmitted, setIsSubmitted] = useState(false)
  const ref = useRef<HTMLFormElement>(null)
  const action = useAction(purpose, submit)
  const refused = fieldErrors(action.error, values, secret)
  const hasRefusal = action.error !== undefined
  useEffect(() => {
    if (hasRefusal) focusFirstError(ref.current)
  }, [hasRefusal])

  const errorOf = (name: N): string | undefined => checks[name]?.(values[name], values)
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault()
    const found = Object.fromEntries(Object.keys(values).flatMap((name) => entryOf(name, errorOf(name as N)))) as typeof wrong
    setWrong(found)
    setIsSubmitted(true)
    if (Object.keys(found).length === 0) action.perform(values)
    else requestAnimationFrame(() => focusFirstError(ref.current))
  }
  const field = (name: N): ReturnType<Form<N>['field']> => ({
    name,
    value: values[name],
    error: wrong[name] ?? refused[name],
    onChange(value) {
      changed.current.add(name)
      const next = { ...values, [name]: value }
      setValues(next)
      setWrong({ ...wrong, [name]: undefined })
      setIsSubmitted(false)
      action.reset()
      onChange?.(next)
    },
    onBlur() {
      if (changed.current.has(name) && values[name] !== '') setWrong({ ...wrong, [name]: errorOf(name) })
    },
  })
  const refill = (next: Values<N>): void => {
    changed.current.clear()
    setValues(next)
    setWrong({})
    setIsSubmitted(false)
  }
  const failed = (Object.keys(values) as N[]).filter((name) => (wrong[name] ?? refused[name]) !== undefined)
  const summary = isSubmitted && failed.length > 1 ? failed : []
  const problem = Object.keys(refused).length > 0 ? undefined : action.error
  return { form: { noValidate: true, onSubmit, ref }, field, action: { ...action, problem }, values, summary, refill }
}

function entryOf(name: string, error: string | undefined): [string, string][] {
  return error === undefined ? [] : [[name, error]]
}

/** The messages of the server that belong to a field of the form. */
function fieldErrors<N extends string>(error: Error | undefined, values: Values<N>, secret: N | undefined): Partial<Record<N, string>> {
  if (!(error instanceof Refused)) return {}
  const named = Object.entries(error.fields).filter(([name]) => name in values)
  const isOfSecret = error.code === 'wrong-credentials' && secret !== undefined && named.length === 0
  const proof = isOfSecret ? [[secret, error.message]] : []
  return Object.fromEntries([...proof, ...named]) as Partial<Record<N, string>>
}

/** Focuses the list of errors, else the field. */
function focusFirstError(form: HTMLFormElement | null): void {
  const first = form?.querySelector<HTMLElement>('.summary') ?? form?.querySelector<HTMLElement>('[aria-invalid="true"]')
  first?.focus()
}
