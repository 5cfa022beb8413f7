/** A summary of an object's status for a person: whether the object works, and each problem with its reason and its remedy. Pure. */
import { findCondition } from '#api/condition-list.ts'
import type { ApiKind } from '#api/kind.ts'
import type { Condition } from '#api/metadata.ts'
import { shownRef, refOf, type KubeObject } from '#kube/port.ts'
import type { KubeEvent } from '#kube/resources.ts'
import type { ObjectLine } from './object-lines.ts'

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

/** Conditions that are a note, not a problem: a model without a price works, and a key that needs the price reports it. */
const NOTES: ReadonlySet<string> = new Set(['Priced'])
/** Reasons that refer to another condition with the same message. */
const POINTERS: ReadonlySet<string> = new Set(['NotAccepted', 'SecretNotIssued', 'NotProgrammed', 'NoEndpoints'])
/** Other reasons are warnings. */
const WEIGHTS: Readonly<Record<string, Problem['weight']>> = {
  Suspended: 'Wanted',
  Revoked: 'Wanted',
  Pending: 'Passing',
  NotProgrammed: 'Passing',
  NoGateways: 'Passing',
}

const START_SERVER = 'Start the model server, or correct the `url` of the backend.'
const START_REDIS = 'Start the Redis of REDIS_URL. Headgate continues by itself; until then the last edit is not in force.'
const ADD_CREDIT = 'Add a Credit to the manifests.'
const RAISE = 'Raise the amount of the budget, or wait for its next window.'

/** Remedies by reason, if the message has no remedy, or one that needs a cluster. `Kind/Reason` where the kinds differ. */
const REMEDIES: Readonly<Record<string, string>> = {
  'ApiKey/StoreUnreachable': START_REDIS,
  'ApiKey/WaitingForStore': START_REDIS,
  'ApiKey/BalanceExhausted': ADD_CREDIT,
  'ApiKey/BudgetExhausted': 'Raise the amount of the budget to let the key work before that.',
  'ServedModel/AddressRefused': 'Write the address of a model server.',
  'ServedModel/SecretNotFound': 'Add the Secret to the manifests, with the label headgate.dev/upstream-auth: "true".',
  'ServedModel/Unreachable': START_SERVER,
  'ServedModel/Degraded': START_SERVER,
}
const EVENT_REMEDIES: Readonly<Record<string, string>> = {
  BalanceLow: ADD_CREDIT,
  BalanceExhausted: ADD_CREDIT,
  BudgetNearlyUsed: RAISE,
  BudgetExhausted: RAISE,
  RevocationUnconfirmed: 'Start Headgate again to be sure: a key that is revoked is never loaded.',
}
/** The operator's message about a backend whose Service does not exist. */
const NO_SERVICE = /(backends\[[^\]]*\]\.service): .*? The backend is used as soon as it exists\./g
const NO_SERVICES = '$1: there are no Services without a cluster. Write `url: http://<host>:<port>` instead of `service`.'

/** @param more problems without a condition */
export function reportOf(kind: ApiKind, object: KubeObject, more: readonly Problem[] = []): ObjectReport {
  const { status } = object as KubeObject & {
    readonly status?: { readonly conditions?: readonly Condition[]; readonly observedGeneration?: number }
  }
  const isReady = findCondition(status?.conditions, 'Ready')?.status === 'True'
  const isCurrent = status?.observedGeneration === object.metadata.generation && status?.conditions !== undefined
  const problems = [...problemsOf(kind, status?.conditions ?? []), ...more]
  return { kind: kind.resource.kind, name: shownRef(refOf(object)), isReady, isCurrent, problems }
}

/** Whether work is under way that usually ends by itself at once. */
export function isPassing({ isCurrent, problems }: ObjectReport): boolean {
  return !isCurrent || problems.some(({ weight }) => weight === 'Passing')
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
  const problems = [...Map.groupBy(failing, ({ message }) => message).values()].flatMap((group) => {
    const cause = group.find(({ reason }) => !POINTERS.has(reason)) ?? group.at(-1)
    if (cause === undefined) return []
    const { type, status, reason, message } = cause
    const text = withRemedy(message.replace(NO_SERVICE, NO_SERVICES), REMEDIES[`${resource.kind}/${reason}`])
    return [{ headline: headlineOf(group, conditions), reason, condition: { type, status }, text, weight: WEIGHTS[reason] ?? 'Warning' }]
  })
  return problems.filter(({ reason }, index) => problems.findIndex((other) => other.reason === reason) === index)
}

function withRemedy(text: string, remedy: string | undefined): string {
  return remedy === undefined ? text : `${text} ${remedy}`
}

function headlineOf(group: readonly Condition[], all: readonly Condition[]): string {
  const [first] = group
  if (first?.type === 'Ready') return first.status === 'False' ? 'not ready' : 'not known whether it is ready'
  const words = `${group.map(({ type }) => type).join(' and ')} ${group.length > 1 ? 'are' : 'is'} ${first?.status ?? ''}`
  return findCondition(all, 'Ready')?.status === 'True' ? `ready, but ${words}` : words
}

/**
 * The lines about a change, each problem once.
 * @param before undefined: the object was not reported yet
 */
export function linesOfChange(before: ObjectReport | undefined, after: ObjectReport): readonly ObjectLine[] {
  const known = new Set(before?.problems.map(textOf))
  const begun = after.problems.filter((problem) => !known.has(textOf(problem)))
  const { kind, name } = after
  const conditions = begun.map(({ headline, reason, condition, text, weight }): ObjectLine => {
    const facts = { change: 'Condition', ...condition, reason, message: text } as const
    return { level: weight === 'Wanted' ? 'info' : 'warn', kind, name, words: `${headline} (${reason})`, text, facts }
  })
  return [...conditions, ...recoveries(before, after)]
}

function textOf({ headline, reason, text }: Problem): string {
  return `${headline} ${reason} ${text}`
}

const READY = { type: 'Ready', status: 'True', reason: 'Ready' }

function recoveries(before: ObjectReport | undefined, { kind, name, isReady, problems }: ObjectReport): readonly ObjectLine[] {
  const line = (words: string, facts: Omit<ObjectLine['facts'], 'change'>): ObjectLine => {
    return { level: 'info', kind, name, words, facts: { change: 'Recovery', ...facts } }
  }
  if (before === undefined) return isReady && problems.length === 0 ? [line('ready', READY)] : []
  const ended = before.problems.filter(({ reason }) => problems.every((problem) => problem.reason !== reason))
  const unnamed = ended.filter(({ over }) => over === undefined).map(({ reason }) => reason)
  if (!before.isReady && isReady) {
    const words = unnamed.length === 0 ? 'ready' : `ready now (it was ${unnamed.join(', ')})`
    return [line(words, { ...READY, ended: ended.map(({ reason }) => reason) })]
  }
  const named = ended.flatMap(({ over, reason }) => (over === undefined ? [] : [line(over, { ended: [reason] })]))
  return [...named, ...(unnamed.length === 0 ? [] : [line(`no longer ${unnamed.join(', ')}`, { ended: unnamed })])]
}

/** The line about a deleted object. */
export function deletedLine(kind: string, name: string): ObjectLine {
  if (kind !== 'ApiKey') return { level: 'info', kind, name, words: 'deleted', facts: { change: 'Deleted' } }
  const message = 'the key is revoked, and its Secret is removed'
  const manyWords = 'deleted: the keys are revoked, and their Secrets are removed'
  return { level: 'info', kind, name, words: `deleted: ${message}`, manyWords, facts: { change: 'Deleted', message } }
}

/** The line about a Warning Event. */
export function eventLine(kind: string, name: string, { reason, note = '' }: Pick<KubeEvent, 'reason' | 'note'>): ObjectLine {
  const text = withRemedy(note, EVENT_REMEDIES[reason])
  return { level: 'warn', kind, name, words: reason, text, facts: { change: 'Event', type: 'Warning', reason, message: text } }
}
