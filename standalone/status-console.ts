/**
 * Logs the state of each object, as `kubectl get`, `describe` and the Events show it in a cluster, and prints a command for each key that
 * works. The console compares states and not changes: it does not log a state of a moment, and always logs the last state.
 */
import type { Cancel, Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { ApiKey } from '#api/apikey.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import { findCondition } from '#api/condition-list.ts'
import type { ApiKind } from '#api/kind.ts'
import type { ServedModel } from '#api/served-model.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import { shownRef, refOf, uidOf, type Informer, type KubeObject, type ObjectRef } from '#kube/port.ts'
import { events, type KubeEvent, namespaces } from '#kube/resources.ts'
import { namesOf } from '../operator/kinds/served-model/names.ts'
import { curlLine, limitsLine, moreKeysLine, startBanner } from './banner.ts'
import { accessOf, type Models, type ModelState, nameOf } from './model-access.ts'
import { logLines } from './object-lines.ts'
import { deletedLine, eventLine, isPassing, linesOfChange, reportOf, type ObjectReport, type Problem } from './object-report.ts'
import type { ObjectStore } from './object-store.ts'
import { type connectionFailure, NOT_TRIED, ServerProbe } from './server-probe.ts'

export interface StatusConsoleDeps {
  readonly store: Pick<ObjectStore, 'informer'>
  readonly clock: Clock
  readonly log: Log
  readonly print: (text: string) => void
  readonly baseURL: string
  readonly manifests: string
  /** Printed before the first command. */
  readonly note: () => string
  /** Path of the file with the value of a key. */
  readonly secretFile: (secret: ObjectRef) => string
  /** Whether the operator has work now, so that states are about to change. */
  readonly isBusy: () => boolean
  readonly failureAt?: typeof connectionFailure
}

/** An object with a change that is not logged yet. */
interface Pending {
  readonly kind: ApiKind
  readonly ref: ObjectRef
}

interface Difference extends Pending {
  readonly id: string
  /** undefined: the object was deleted. */
  readonly report: ObjectReport | undefined
}

/** Maximum number of commands printed at once: for more keys that begin to work together, a line of the log is enough. */
const MAX_COMMANDS = 3
const CHECK_MS = 50
/** States are logged when nothing has changed for this time, ms. */
const LASTING_MS = 150
/** Longest wait for that, for the operator, and for a state that usually ends by itself, ms. */
const PASSING_MS = 5_000

export class StatusConsole {
  readonly #deps: StatusConsoleDeps
  readonly #keys: Informer<ApiKey>
  readonly #models: Informer<ServedModel>
  readonly #probe: ServerProbe
  /** By kind and name. */
  readonly #pending = new Map<string, Pending>()
  readonly #logged = new Map<string, ObjectReport>()
  #events: KubeEvent[] = []
  /** Uids of keys whose command was printed. */
  readonly #printed = new Set<string>()
  #known: Models | undefined
  /** Whether the first state is logged. */
  #hasBegun = false
  /** Time of the first change since the last lines; undefined = none. */
  #sinceMs: number | undefined
  /** Time of the last change. */
  #changedMs = 0
  #cancel: Cancel = () => undefined

  constructor(deps: StatusConsoleDeps) {
    const { store, clock, failureAt } = deps
    this.#deps = deps
    this.#keys = store.informer(apiKeyKind.resource)
    this.#models = store.informer(servedModelKind.resource)
    this.#probe = new ServerProbe(clock, () => this.#modelsChanged(), failureAt)
    this.#keys.subscribe((before, after) => this.#changed(apiKeyKind, after ?? before))
    this.#models.subscribe((before, after) => {
      this.#changed(servedModelKind, after ?? before)
      this.#modelsChanged()
    })
    store.informer(namespaces).subscribe(() => this.#modelsChanged())
    store.informer(events).subscribe((before, after) => {
      if (before === undefined && after?.type === 'Warning') this.#events.push(after) // a repeated Event is a change of the first
      this.#wait()
    })
  }

  /** Logs the first state of every object once it is known, or after PASSING_MS, and prints the first lines. From then on logs each change. */
  start(): void {
    this.#sinceMs = undefined
    this.#wait()
    this.#checkLater()
  }

  stop(): void {
    this.#cancel()
    this.#probe.follow([])
  }

  #changed(kind: ApiKind, object: KubeObject | undefined): void {
    if (object !== undefined) this.#pending.set(`${kind.resource.kind} ${nameOf(object)}`, { kind, ref: refOf(object) })
    this.#wait()
  }

  /** The reports of all models, and of all keys, depend on the models. */
  #modelsChanged(): void {
    if (this.#known === undefined) return
    this.#known = undefined
    for (const model of this.#models.list()) this.#changed(servedModelKind, model)
    for (const key of this.#keys.list()) this.#changed(apiKeyKind, key)
  }

  #wait(): void {
    this.#changedMs = this.#deps.clock.monotonic()
    this.#sinceMs ??= this.#changedMs
  }

  #checkLater(): void {
    this.#cancel = this.#deps.clock.after(CHECK_MS, () => {
      if (this.#sinceMs !== undefined) this.#check(this.#sinceMs)
      this.#checkLater()
    })
  }

  /** Everything waits until the states last, so that the changes of many objects come together. */
  #check(sinceMs: number): void {
    const differences = this.#differences() // also starts the probes
    const isNews = !this.#hasBegun || differences.length > 0 || this.#events.length > 0
    const nowMs = this.#deps.clock.monotonic()
    const isMoving = this.#deps.isBusy() || nowMs - this.#changedMs < LASTING_MS
    const isWaiting = isMoving || differences.some(({ report }) => report !== undefined && isPassing(report))
    if (isNews && isWaiting && nowMs - sinceMs < PASSING_MS) return
    this.#sinceMs = undefined
    const usable = this.#log(differences.filter(({ report }) => this.#hasBegun || report?.isCurrent !== false))
    this.#logEvents()
    this.#print(usable)
    this.#hasBegun = true
  }

  #print(usable: readonly ApiKey[]): void {
    const { baseURL, manifests, note, print } = this.#deps
    if (this.#hasBegun) {
      if (usable.length > 0 && usable.length <= MAX_COMMANDS) print(`\n${this.#commands(usable)}`)
      return
    }
    const { all } = this.#modelStates()
    const callable = all.filter(({ problem }) => problem === undefined)
    const models = [...new Set(callable.flatMap(({ model }) => namesOf(model)))].toSorted()
    const unusable = all.flatMap(({ model, problem }) => (problem ? [`${nameOf(model)} (${problem.reason})`] : []))
    const keys = { total: [...this.#keys.list()].length, usable: usable.length }
    print(startBanner({ baseURL, manifests, models, unusable, keys }) + note() + this.#commands(usable))
  }

  /** The objects whose state is not the logged one. An object that is about to be deleted is one when it is deleted. */
  #differences(): readonly Difference[] {
    return [...this.#pending].flatMap(([id, one]) => {
      const report = this.#report(one)
      if (report !== undefined && (report === 'Deleting' || JSON.stringify(report) === JSON.stringify(this.#logged.get(id)))) {
        this.#pending.delete(id)
        return []
      }
      return [{ ...one, id, report }]
    })
  }

  /** Logs differences. @returns keys that work now and did not before */
  #log(differences: readonly Difference[]): readonly ApiKey[] {
    const usable: ApiKey[] = []
    const lines = differences.flatMap(({ id, kind, ref, report }) => {
      this.#pending.delete(id)
      const before = this.#logged.get(id)
      if (report === undefined) {
        this.#logged.delete(id)
        return [deletedLine(kind.resource.kind, shownRef(ref))]
      }
      this.#logged.set(id, report)
      const key = kind === apiKeyKind ? this.#keys.get(ref) : undefined
      if (key && isUsable(key, report) && !this.#printed.has(uidOf(key))) usable.push(key)
      return linesOfChange(before, report)
    })
    for (const key of usable) this.#printed.add(uidOf(key))
    logLines(this.#deps.log, lines)
    return usable
  }

  /** Logs Warnings, unless a condition of the object has the same content. */
  #logEvents(): void {
    const lines = this.#events.splice(0).flatMap((event) => {
      const { kind = '', namespace = '', name = '' } = event.regarding ?? {}
      const report = this.#logged.get(`${kind} ${shownRef({ namespace, name })}`)
      const isSaid = report?.problems.some(({ reason }) => reason === event.reason) === true
      return isSaid ? [] : [eventLine(kind, shownRef({ namespace, name }), event)]
    })
    logLines(this.#deps.log, lines)
  }

  /** The report of an object; undefined if it does not exist. */
  #report({ kind, ref }: Pick<Pending, 'kind' | 'ref'>): ObjectReport | 'Deleting' | undefined {
    if (kind === servedModelKind) {
      this.#modelStates() // starts the probes
      const model = this.#models.get(ref)
      return model && modelReport(model, this.#probe)
    }
    const key = this.#keys.get(ref)
    if (key === undefined) return undefined
    if (key.metadata.deletionTimestamp !== undefined) return 'Deleting'
    const report = reportOf(apiKeyKind, key)
    const problem = report.isReady ? accessOf(key, this.#modelStates()).problem : undefined
    return problem === undefined ? report : { ...report, problems: [...report.problems, problem] }
  }

  #modelStates(): Models {
    if (this.#known === undefined) {
      const models = sorted([...this.#models.list()])
      this.#probe.follow(models.flatMap(({ spec }) => spec.backends.flatMap(({ url }) => url ?? [])))
      const labels = this.#deps.store.informer(namespaces)
      this.#known = {
        all: models.map((model) => stateOf(model, this.#probe)),
        labelsOf: (namespace) => labels.get({ namespace: '', name: namespace })?.metadata.labels ?? {},
      }
    }
    return this.#known
  }

  #commands(keys: readonly ApiKey[]): string {
    const more = keys.length - MAX_COMMANDS
    const commands = sorted(keys)
      .slice(0, MAX_COMMANDS)
      .map((key) => {
        const { baseURL, secretFile } = this.#deps
        const { model = '' } = accessOf(key, this.#modelStates())
        const { namespace, name } = refOf(key)
        const ready = { baseURL, key, secretFile: secretFile({ namespace, name: key.status?.secretRef?.name ?? name }), model }
        return curlLine(ready) + limitsLine(ready)
      })
    return (more > 0 ? moreKeysLine(more) : '') + commands.join('')
  }
}

/** Whether the key may call a model now. */
function isUsable(key: ApiKey, report: ObjectReport): boolean {
  const isIssued = findCondition(key.status?.conditions, 'SecretIssued')?.status === 'True'
  return report.isReady && isIssued && report.problems.every(({ reason }) => reason !== 'NoModel')
}

/** Servers that do not answer are a problem before the gateway has noticed it from requests. */
function modelReport(model: ServedModel, probe: ServerProbe): ObjectReport {
  const isAccepted = findCondition(model.status?.conditions, 'Accepted')?.status === 'True'
  const silent = model.spec.backends.flatMap(({ name, url = '' }): Problem[] => {
    const failure = isAccepted ? probe.failureOf(url) : undefined
    if (failure === undefined) return []
    const text = `${url} (backends[${name}].url): ${failure}. Start the model server, or correct the url.`
    const weight = failure === NOT_TRIED ? 'Passing' : 'Warning'
    return [{ headline: 'no server answers', reason: 'NotAnswering', text, weight, over: 'its server answers now' }]
  })
  return reportOf(servedModelKind, model, silent)
}

/** A model is usable while one of its servers answers. */
function stateOf(model: ServedModel, probe: ServerProbe): ModelState {
  const { isReady, problems } = modelReport(model, probe)
  const silent = problems.filter(({ reason }) => reason === 'NotAnswering')
  if (isReady && silent.length < model.spec.backends.length) return { model, problem: undefined }
  const [cause = { reason: 'NotReady', weight: 'Passing' as const }] = isReady ? silent : problems
  return { model, problem: cause }
}

function sorted<T extends KubeObject>(objects: readonly T[]): readonly T[] {
  return objects.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
}
