/** A summary of an object's status for a person: whether the object works, and each problem with its reason and its remedy. Pure. */
import { findCondition } from '#api/condition-list.ts'
import type { ApiKind } from '#api/kind.ts'
import { servedModels } from '#api/resources.ts'
import type { Condition } from '#api/metadata.ts'
import { refKey, refOf, type KubeObject } from '#kube/port.ts'
import { remedied } from './remedies.ts'

/** A problem that keeps an object from working as in its manifest. */
export interface Problem {
  /** The problem, in words or as its conditions. */
  readonly headline: string
  /** CamelCase, as in the status. */
  readonly reason: string
  /** The condition that has the reason; undefined for a problem that no condition names. */
  readonly condition?: Pick<Condition, 'type' | 'status'>
  /** The cause and the remedy, in sentences. */
  readonly text: string
  /** `Wanted`: the manifest asks for it. `Passing`: work is under way, and usually ends within a second. */
  readonly weight: 'Warning' | 'Wanted' | 'Passing'
  /** Problems with equal identities are the same, whatever their texts; default: the text. */
  readonly identity?: string
  /** Text for the end of the problem; default: that the object is ready, or no longer `reason`. */
  readonly over?: string
}

/** One object. */
export interface ObjectReport {
  readonly kind: string
  /** `namespace/name`. */
  readonly name: string
  /** Whether the condition Ready is True. */
  readonly isReady: boolean
  /** Whether the status describes the current manifest. */
  readonly isCurrent: boolean
  readonly problems: readonly Problem[]
}

type Status = { readonly status?: { readonly conditions?: readonly Condition[]; readonly observedGeneration?: number } }

/** Conditions that are a note, not a problem: a model without a price works, and a key that needs the price reports it. */
const NOTES: ReadonlySet<string> = new Set(['Priced'])
const WANTED: ReadonlySet<string> = new Set(['Suspended', 'Revoked'])
/** Reasons that refer to another condition with the same message. */
const POINTERS: ReadonlySet<string> = new Set(['NotAccepted', 'SecretNotIssued', 'NotProgrammed', 'NoEndpoints'])
const PASSING: ReadonlySet<string> = new Set(['Pending', 'NotProgrammed', 'NoGateways'])

/** @param more problems without a condition */
export function reportOf(kind: ApiKind, object: KubeObject, more: readonly Problem[] = []): ObjectReport {
  const { status } = object as KubeObject & Status
  const isReady = findCondition(status?.conditions, 'Ready')?.status === 'True'
  const name = refKey(refOf(object))
  const isCurrent = status?.observedGeneration === object.metadata.generation && status?.conditions !== undefined
  return { kind: kind.resource.kind, name, isReady, isCurrent, problems: [...problemsOf(kind, status?.conditions ?? []), ...more] }
}

/** `ApiKey demo/first-key` */
export function titleOf({ kind, name }: Pick<ObjectReport, 'kind' | 'name'>): string {
  return `${kind} ${name}`
}

/**
 * Conditions with the same message are one problem: Ready repeats the message of the condition that explains it. So are conditions with the
 * same cause. Conditions that are in the status only while they are True repeat one of the others.
 */
function problemsOf({ conditions: table, resource }: ApiKind, conditions: readonly Condition[]): Problem[] {
  const failing = Object.entries(table).flatMap(([type, { presence }]) => {
    const condition = presence === 'Always' && !NOTES.has(type) ? findCondition(conditions, type) : undefined
    return condition === undefined || condition.status === 'True' ? [] : [condition]
  })
  const groups = [...Map.groupBy(failing, ({ message }) => message).values()]
  const problems = groups.flatMap((group) => {
    const cause = group.find(({ reason }) => !POINTERS.has(reason)) ?? group.at(-1)
    if (cause === undefined) return []
    const { type, status, reason, message } = cause
    const text = remedied({ reason, message, isModel: resource.kind === servedModels.kind })
    return [{ headline: headlineOf(group, conditions), reason, condition: { type, status }, text, weight: weightOf(reason) }]
  })
  return problems.filter(({ reason }, index) => problems.findIndex((other) => other.reason === reason) === index)
}

function weightOf(reason: string): Problem['weight'] {
  if (WANTED.has(reason)) return 'Wanted'
  return PASSING.has(reason) ? 'Passing' : 'Warning'
}

function headlineOf(group: readonly Condition[], all: readonly Condition[]): string {
  const [first] = group
  if (first === undefined) return ''
  if (first.type === 'Ready') return first.status === 'False' ? 'not ready' : 'not known whether it is ready'
  const words = `${group.map(({ type }) => type).join(' and ')} ${group.length > 1 ? 'are' : 'is'} ${first.status}`
  return findCondition(all, 'Ready')?.status === 'True' ? `ready, but ${words}` : words
}
