/** Follows ApiKeys and ServedModels, logs their state, and prints a command for each key that works now. */
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { ApiKey } from '#api/apikey.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import { findCondition } from '#api/condition-list.ts'
import type { ApiKind } from '#api/kind.ts'
import type { ServedModel } from '#api/served-model.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import type { EventText } from '#kube/events.ts'
import { refKey, refOf, uidOf, type Informer, type KubeObject, type ObjectRef } from '#kube/port.ts'
import { namespaces } from '#kube/resources.ts'
import { namesOf } from '../operator/kinds/served-model/names.ts'
import { curlLine, limitsLine, moreKeysLine, startBanner } from './banner.ts'
import { accessOf, type Models, type ModelState } from './model-access.ts'
import { reportOf, type ObjectReport, type Problem } from './object-report.ts'
import type { ObjectStore } from './object-store.ts'
import { connectByTcp, NOT_TRIED, ServerProbe, type Connect } from './server-probe.ts'
import type { ReportChange } from './status-lines.ts'
import { StatusReporter } from './status-reporter.ts'

/** What the console needs. */
export interface StatusConsoleDeps {
  readonly store: Pick<ObjectStore, 'informer'>
  readonly clock: Clock
  readonly log: Log
  readonly print: (text: string) => void
  readonly manifests: string
  /** Path of the file with the value of a key. */
  readonly secretFile: (secret: ObjectRef) => string
  readonly connect?: Connect
}

/** Maximum number of commands printed at once: for more keys that begin to work together, a line of the log is enough. */
const MOST_COMMANDS = 3

/** One per process. */
export class StatusConsole {
  readonly #deps: StatusConsoleDeps
  readonly #keys: Informer<ApiKey>
  readonly #models: Informer<ServedModel>
  readonly #reporter: StatusReporter
  readonly #probe: ServerProbe
  /** Uids of keys whose command was printed. */
  readonly #printed = new Set<string>()
  #known: Models | undefined
  #baseURL: string | undefined
  /** Keys that worked at the start. */
  #waiting: readonly ApiKey[] = []

  constructor(deps: StatusConsoleDeps) {
    const { store, clock, log, connect = connectByTcp } = deps
    this.#deps = deps
    this.#keys = store.informer(apiKeyKind.resource)
    this.#models = store.informer(servedModelKind.resource)
    this.#probe = new ServerProbe({ clock, connect, onChange: () => this.#modelsChanged() })
    this.#reporter = new StatusReporter({
      clock,
      log,
      report: (kind, name) => this.#report(kind, name),
      onReported: (changes) => this.#reported(changes),
    })
    this.#keys.subscribe((before, after) => this.#changed(apiKeyKind, before, after))
    this.#models.subscribe((before, after) => {
      this.#changed(servedModelKind, before, after)
      this.#modelsChanged()
    })
    store.informer(namespaces).subscribe(() => this.#modelsChanged())
  }

  /** Reports an Event of the operator. */
  event(object: KubeObject, text: EventText): void {
    this.#reporter.event(object, text)
  }

  /** Whether no work is under way that usually ends by itself at once. */
  get isSettled(): boolean {
    return this.#reporter.isSettled
  }

  /**
   * Reports the current state, prints the first lines, and reports each change from then on.
   * @param text printed before the first command
   */
  start(baseURL: string, text: string): void {
    const { print, manifests } = this.#deps
    this.#reporter.start()
    const { all } = this.#modelStates()
    const usable = all.filter((state) => state.unusable === undefined)
    print(
      startBanner({
        baseURL,
        manifests,
        models: [...new Set(usable.flatMap(({ model }) => namesOf(model)))].toSorted(),
        unusable: all.flatMap(({ model, unusable: why }) => (why === undefined ? [] : [`${refKey(refOf(model))} (${why})`])),
        keys: { total: [...this.#keys.list()].length, usable: this.#waiting.length },
      }) + text,
    )
    this.#baseURL = baseURL
    if (this.#waiting.length > 0) print(this.#commands(this.#waiting, baseURL))
  }

  stop(): void {
    this.#reporter.stop()
    this.#probe.stop()
  }

  #changed(kind: ApiKind, before: KubeObject | undefined, after: KubeObject | undefined): void {
    if (after === undefined) this.#reporter.deleted(kind, nameOf(before))
    else this.#reporter.changed(kind, nameOf(after))
  }

  /** Makes every report that depends on models again, once for any number of changes. */
  #modelsChanged(): void {
    if (this.#known === undefined) return
    this.#known = undefined
    for (const model of this.#models.list()) this.#reporter.changed(servedModelKind, nameOf(model))
    for (const key of this.#keys.list()) this.#reporter.changed(apiKeyKind, nameOf(key))
  }

  #report(kind: ApiKind, name: string): ObjectReport | 'Deleting' | undefined {
    const ref = refFrom(name)
    if (kind === servedModelKind) {
      this.#modelStates() // starts the probes
      const model = this.#models.get(ref)
      return model && modelReport(model, this.#probe)
    }
    const key = this.#keys.get(ref)
    if (key === undefined) return undefined
    return key.metadata.deletionTimestamp === undefined ? this.#keyReport(key) : 'Deleting'
  }

  /** The report of a key: the reasons if it does not work, otherwise the problems of its models. */
  #keyReport(key: ApiKey): ObjectReport {
    const report = reportOf(apiKeyKind, key)
    const problem = report.isReady ? accessOf(key, this.#modelStates()).problem : undefined
    return problem === undefined ? report : { ...report, problems: [...report.problems, problem] }
  }

  #modelStates(): Models {
    if (this.#known === undefined) {
      const models = [...this.#models.list()].toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
      this.#probe.follow(models.flatMap(({ spec }) => spec.backends.flatMap(({ url }) => url ?? [])))
      const labels = this.#deps.store.informer(namespaces)
      this.#known = {
        all: models.map((model) => stateOf(model, this.#probe)),
        labelsOf: (namespace) => labels.get({ namespace: '', name: namespace })?.metadata.labels ?? {},
      }
    }
    return this.#known
  }

  #reported(changes: readonly ReportChange[]): void {
    const usable = changes.flatMap(({ kind, name, after }) => {
      const key = kind === apiKeyKind.resource.kind ? this.#keys.get(refFrom(name)) : undefined
      return key === undefined || after === undefined || !isUsable(key, after) ? [] : [key]
    })
    const first = usable.filter((key) => !this.#printed.has(uidOf(key)))
    for (const key of first) this.#printed.add(uidOf(key))
    if (this.#baseURL === undefined) this.#waiting = first
    else if (first.length > 0 && first.length <= MOST_COMMANDS) this.#deps.print(`\n${this.#commands(first, this.#baseURL)}`)
  }

  #commands(keys: readonly ApiKey[], baseURL: string): string {
    const sorted = keys.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
    const more = keys.length - MOST_COMMANDS
    const commands = sorted.slice(0, MOST_COMMANDS).map((key) => this.#command(key, baseURL))
    return (more > 0 ? moreKeysLine(more) : '') + commands.join('')
  }

  #command(key: ApiKey, baseURL: string): string {
    const { namespace = '', name } = key.metadata
    const { model } = accessOf(key, this.#modelStates())
    if (model === undefined) return ''
    const secretFile = this.#deps.secretFile({ namespace, name: key.status?.secretRef?.name ?? name })
    const ready = { baseURL, key, secretFile, model }
    return curlLine(ready) + limitsLine(ready)
  }
}

function isUsable(key: ApiKey, report: ObjectReport): boolean {
  const isIssued = findCondition(key.status?.conditions, 'SecretIssued')?.status === 'True'
  return report.isReady && isIssued && report.problems.every(({ reason }) => reason !== 'NoModel')
}

function modelReport(model: ServedModel, probe: ServerProbe): ObjectReport {
  const isAccepted = findCondition(model.status?.conditions, 'Accepted')?.status === 'True'
  return reportOf(servedModelKind, model, isAccepted ? silentServers(model, probe) : [])
}

/** Servers that do not answer, before the gateway has noticed it from requests. */
function silentServers({ spec }: ServedModel, probe: ServerProbe): readonly Problem[] {
  return spec.backends.flatMap(({ name, url }): Problem[] => {
    const failure = url === undefined ? undefined : probe.failureOf(url)
    if (failure === undefined) return []
    const text = `${url ?? ''} (backends[${name}].url): ${failure}. Start the model server, or correct the url.`
    const weight = failure === NOT_TRIED ? 'Passing' : 'Warning'
    return [{ headline: 'no server answers', reason: 'NotAnswering', text, weight, over: 'its server answers now' }]
  })
}

function stateOf(model: ServedModel, probe: ServerProbe): ModelState {
  const { isReady, problems } = modelReport(model, probe)
  const [first] = problems
  if (!isReady) return { model, unusable: first?.reason ?? 'NotReady', isPassing: first === undefined || first.weight === 'Passing' }
  const silent = problems.filter(({ reason }) => reason === 'NotAnswering')
  const [one] = silent
  if (one === undefined || silent.length < model.spec.backends.length) return { model, unusable: undefined, isPassing: false }
  return { model, unusable: one.reason, isPassing: one.weight === 'Passing' }
}

function nameOf(object: KubeObject | undefined): string {
  return object === undefined ? '' : refKey(refOf(object))
}

function refFrom(name: string): ObjectRef {
  const [namespace = '', object = ''] = name.split('/')
  return { namespace, name: object }
}
