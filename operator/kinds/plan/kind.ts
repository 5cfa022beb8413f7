/** The kind Plan, as the operator runs it. */
import type { Account } from '#api/account.ts'
import { planBudgetsWithoutZone, planPolicy } from '#api/account-policy.ts'
import type { Plan } from '#api/plan.ts'
import { planKind } from '#api/plan-kind.ts'
import { accounts as accountResource, plans, servedModels } from '#api/resources.ts'
import type { ServedModel } from '#api/served-model.ts'
import { encodePlanRecord, type PlanRecord } from '#contract/records/plan-record.ts'
import { identityOf, type ObjectRef, refOf, uidOf } from '#kube/port.ts'
import { tightensPlan } from '#policy/effective.ts'
import { ACCOUNT_INDEX, PLAN_INDEX } from '../../accounts/accounts.ts'
import { LiveReads } from '../../accounts/live-reads.ts'
import { RecordedKind } from '../recorded-kind.ts'
import { isRepeated, recordState } from '../../accounts/record-state.ts'
import { itemKey } from '../../loop/item.ts'
import type { Level } from '../../loop/level.ts'
import type { ProjectionChange } from '../../projection/store.ts'
import { findByUid, type Kind, type KindRow, type OperatorContext, type Wake, watch } from '../kind.ts'
import type { Observed, ObservedPlan } from './observed.ts'
import { statusOf } from './status.ts'
import { nextStep, type PlanStep, reportStep } from './steps.ts'

const KIND = plans.kind
/** Delay of statuses that count accounts and keys, ms: many may change at once. */
const COUNT_AFTER_MS = 5_000
/** Stands for the record of a Plan that may have been deleted. */
const ENDED = { generation: 0, state: 'Deleted' }

export const planRow: KindRow = { api: planKind, create: (context) => new Plans(context) }

class Plans extends RecordedKind<Plan> implements Kind<Plan, Observed, PlanStep> {
  readonly name = KIND
  readonly informer
  readonly watches
  readonly nextStep = nextStep
  readonly report = reportStep
  readonly #live: LiveReads

  constructor(context: OperatorContext) {
    super(context, 'plan')
    const { accounts, informers } = context
    this.#live = new LiveReads(context)
    this.informer = accounts.plans
    this.watches = [
      watch(this.informer, changed),
      watch(accounts.informer, (before, after) => this.#counted(before, after)),
      watch(informers.of(servedModels), (before, after) => (hasSameNames(before, after) ? [] : this.#all())),
    ]
    accounts.records.onSettled((uid) => {
      const plan = findByUid(uid, this.informer)
      if (plan) context.enqueue(KIND, refOf(plan), 'background')
    })
  }

  observe(ref: ObjectRef): Observed | undefined {
    const cached = this.informer.get(ref)
    const unused = this.#unused(ref, cached)
    if (unused !== undefined || cached === undefined) return unused
    const { accounts, clock, models, ownWrites } = this.context
    const plan = ownWrites.newest(cached)
    const users = [...accounts.informer.byIndex(PLAN_INDEX, ref.name)]
    const former = accounts.records.get('plan', uidOf(plan))
    return {
      state: 'Present',
      plan,
      isStale: this.#isStale(plan, former),
      former,
      record: recordState('plan', uidOf(plan), this.#textOf(plan), this.context),
      accountCount: users.length,
      keyCount: users.reduce((sum, { metadata }) => sum + Array.from(accounts.apiKeys.byIndex(ACCOUNT_INDEX, metadata.name)).length, 0),
      unresolvedModels: models.unresolved(plan.spec.models),
      now: clock.now(),
    }
  }

  async apply(step: PlanStep, observed: Observed): Promise<void> {
    const { accounts, projection, acknowledgements } = this.context
    if (observed.state === 'Unused') {
      for (const uid of observed.uids) {
        accounts.records.set(uid, undefined, 'background')
        projection.want('plan', uid, undefined, 'background')
      }
      return acknowledgements.forget(itemKey({ kind: KIND, ref: observed.ref }))
    }
    if (step.do === 'write-status') return await this.#writeStatus(observed)
    if (step.do === 'read-live') return await this.#live.read(plans, observed.plan)
    const uid = uidOf(observed.plan)
    projection.want('plan', uid, observed.record.wanted, step.level)
    if (step.do === 'project') return
    accounts.records.set(uid, observed.record.wanted, step.level)
    if (!isRepeated(observed.record)) this.#enqueueAccounts(observed)
  }

  waits(ref: ObjectRef, observed: Observed): void {
    if (observed.state === 'Present') this.expectGateways(KIND, ref, observed.plan, observed.record)
  }

  /**
   * Plans that were deleted keep their last record while an account uses it. Records that the Secrets have lost are there again before the kind
   * Account names them: gateways refuse the keys of an account without a plan.
   */
  async prepare(): Promise<readonly ProjectionChange[]> {
    const { records } = this.context.accounts
    for (const plan of this.informer.list())
      if (records.textOf(uidOf(plan)) === undefined && !records.isUnreadable(uidOf(plan)))
        records.set(uidOf(plan), this.#textOf(plan), 'change')
    return this.startRecords(this.informer.list(), (plan) => this.#textOf(plan))
  }

  check(): void {
    for (const { name } of this.context.accounts.records.all('plan')) this.context.enqueue(KIND, { namespace: '', name }, 'background')
  }

  /** @param present the Plan of that name, if there is one */
  #unused(ref: ObjectRef, present: Plan | undefined): Observed | undefined {
    const { accounts } = this.context
    const others = accounts.records.named('plan', ref.name).filter(({ uid }) => uid !== present?.metadata.uid)
    if (others.length === 0) return undefined // nearly always, and the next line reads every account
    const used = new Set(Array.from(accounts.records.all('account'), ({ plan, state }) => (state === 'Deleted' ? null : plan)))
    const uids = others.flatMap(({ uid }) => (used.has(uid) ? [] : [uid]))
    return uids.length === 0 ? undefined : { state: 'Unused', ref, uids }
  }

  /** A Plan without a record, of a name that another Plan has or had, counts as outdated until a live read: a standby may have missed its end. */
  #isStale(plan: Plan, former: PlanRecord | undefined): boolean {
    const isReplaced = former === undefined && this.context.accounts.records.named('plan', plan.metadata.name).length > 0
    return this.#live.isStale(plan, isReplaced ? ENDED : former)
  }

  /** undefined for a new plan whose budgets have no time zone: it would allow what the manifest does not. */
  #textOf(plan: Plan): string | undefined {
    const { records } = this.context.accounts
    const former = records.get('plan', uidOf(plan))
    if (this.#isStale(plan, former)) return records.textOf(uidOf(plan))
    const record = planRecord(plan, former)
    return record && encodePlanRecord(record, this.context.version())
  }

  async #writeStatus(observed: ObservedPlan): Promise<void> {
    const { kube, ownWrites } = this.context
    const { plan } = observed
    ownWrites.remember(await kube.applyStatus(plans, { ...plan, metadata: identityOf(plan), status: statusOf(observed) }))
  }

  /** Accounts that wait for the plan, and the keys of all its accounts, whose statuses show the limits in effect. */
  #enqueueAccounts({ plan }: ObservedPlan): void {
    const { accounts, enqueue } = this.context
    for (const account of accounts.informer.byIndex(PLAN_INDEX, plan.metadata.name)) {
      enqueue(accountResource.kind, refOf(account), 'background')
      accounts.enqueueKeys(account.metadata.name, 'background')
    }
  }

  *#counted(before: Account | undefined, after: Account | undefined): Iterable<Wake> {
    const [former, now] = [before, after].map((account) => account && [account.spec.planRef.name, account.status?.keyCount])
    if (former?.join() === now?.join()) return
    for (const name of new Set([before?.spec.planRef.name, after?.spec.planRef.name]))
      if (name !== undefined) yield { ref: { namespace: '', name }, level: 'background', delayMs: COUNT_AFTER_MS }
  }

  *#all(): Iterable<Wake> {
    for (const plan of this.informer.list()) yield { ref: refOf(plan), level: 'background', delayMs: COUNT_AFTER_MS }
  }
}

/** @returns undefined for a plan that cannot be in effect yet */
function planRecord(plan: Plan, former: PlanRecord | undefined): PlanRecord | undefined {
  const { metadata, spec } = plan
  if (former === undefined && planBudgetsWithoutZone(spec).length > 0) return undefined
  const { name, generation = 0 } = metadata
  return { kind: 'plan', version: 1, revision: 0, uid: uidOf(plan), name, generation, ...planPolicy(spec, former) }
}

function* changed(before: Plan | undefined, after: Plan | undefined): Iterable<Wake> {
  const object = after ?? before
  const level = levelOf(before, after)
  if (object && level !== undefined) yield { ref: refOf(object), level }
}

/** @returns undefined for a change that the operator wrote */
function levelOf(before: Plan | undefined, after: Plan | undefined): Level | undefined {
  if (after === undefined) return 'background'
  if (before === undefined || before.metadata.uid !== after.metadata.uid) return 'create'
  if (before.metadata.generation === after.metadata.generation) return undefined
  return tightensPlan(planPolicy(before.spec), planPolicy(after.spec)) ? 'urgent' : 'change'
}

function hasSameNames(before: ServedModel | undefined, after: ServedModel | undefined): boolean {
  const names = (model: ServedModel | undefined): string =>
    model === undefined ? '' : [model.metadata.name, model.spec.servedName, ...(model.spec.aliases ?? [])].join()
  return names(before) === names(after)
}
