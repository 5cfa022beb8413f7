/** Reads and writes the ApiKeys of one account at a time. A key of another account is absent, as one that never existed. */
import type { Account } from '#api/account.ts'
import type { ApiKey, ApiKeySpec } from '#api/apikey.ts'
import type { Plan } from '#api/plan.ts'
import { apiKeys } from '#api/resources.ts'
import type { ServedModel } from '#api/served-model.ts'
import { type Informer, isKubeError, type KubePort, type ObjectRef } from '#kube/port.ts'
import type { Clock } from '#platform/clock.ts'
import { assertListed } from '../accounts/listed.ts'
import { notFound, Refused } from '../http/refused.ts'
import type { KeyForm, Keys as KeyList, KeyView, NewKey, PlanView } from '../page-data/keys.ts'
import { ChangeRate } from './change-rate.ts'
import { type NewKeyForm, refusedFields } from './key-form.ts'
import { editedSpec, keyNameOf, newApiKey } from './key-manifest.ts'
import { drawValue } from './key-value.ts'
import { isManaged, keyView } from './key-view.ts'
import { planView } from './plan-view.ts'

export interface KeysDeps {
  readonly kube: KubePort
  readonly apiKeys: Informer<ApiKey>
  readonly plans: Informer<Plan>
  readonly models: Informer<ServedModel>
  /** Namespace of all keys that people make. */
  readonly namespace: string
  readonly currency: string
  readonly clock: Clock
}

const BY_ACCOUNT = 'keysOfPeople'
/** For how long a former value may go on, s. */
const OVERLAPS: ReadonlySet<number> = new Set([0, 3_600, 86_400])

export class Keys {
  readonly #deps: KeysDeps
  readonly #rate: ChangeRate

  constructor(deps: KeysDeps) {
    this.#deps = deps
    this.#rate = new ChangeRate(deps.clock)
    deps.apiKeys.addIndex(BY_ACCOUNT, accountNames)
  }

  /** @throws KubeError before the first list */
  list(account: Account): KeyList {
    const keys = this.#of(account)
      .toSorted((a, b) => ((a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? 1 : -1))
      .map((key) => this.#view(key, account))
    const plan = this.#planOf(account)
    return { keys, used: keys.filter(isInUse).length, ...(plan && { most: plan.spec.maxKeys }) }
  }

  /** @throws KubeError before the first list */
  plan(account: Account): PlanView {
    const { models, namespace, currency, clock } = this.#deps
    assertListed(models, '', 'ServedModels')
    return planView({ account, plan: this.#planOf(account), models: models.list(), namespace, currency, nowMs: clock.now() })
  }

  /** @throws Refused */
  async get(account: Account, id: string): Promise<KeyView> {
    return this.#view(await this.#find(account, id), account)
  }

  /**
   * Makes a key. The value is in the answer and nowhere else.
   * @throws Refused conflict for an attempt that has made its key already: its value cannot be shown again
   */
  async create(account: Account, { attempt, ...form }: NewKeyForm): Promise<NewKey> {
    await this.#rate.take(account.metadata.name)
    const { kube, namespace } = this.#deps
    const name = keyNameOf(account.metadata.name, attempt)
    if (await this.#read(name)) throw alreadyCreated(name) // before the room is counted, of which this key may be the last
    this.#assertRoom(account)
    const { value, hash } = drawValue({ namespace, name })
    const manifest = newApiKey(form, { name, namespace, account: account.metadata.name, hash })
    try {
      return { key: this.#view(await kube.create(apiKeys, manifest), account), value }
    } catch (error) {
      if (!isKubeError(error, 'AlreadyExists')) throw error
      throw alreadyCreated(name)
    }
  }

  /** @throws Refused */
  async edit(account: Account, id: string, form: KeyForm): Promise<KeyView> {
    await this.#rate.take(account.metadata.name)
    return await this.#change(account, id, (key) => editedSpec(form, key))
  }

  /** @throws Refused */
  async setState(account: Account, id: string, state: ApiKeySpec['state']): Promise<KeyView> {
    if (state === 'Active') await this.#rate.take(account.metadata.name)
    return await this.#change(account, id, ({ spec }) => {
      if (spec.state === 'Revoked' && state !== 'Revoked') throw new Refused('conflict', 'The key is revoked, which is final.')
      return { ...spec, state }
    })
  }

  /**
   * Gives the key another value, and keeps its name, limits and usage.
   * @param overlapSeconds how long the former value works: 0, 3600 or 86400
   * @throws Refused
   */
  async replace(account: Account, id: string, overlapSeconds: number): Promise<NewKey> {
    if (!OVERLAPS.has(overlapSeconds)) throw refusedFields({ overlapSeconds: 'Choose how long the old value works.' })
    await this.#rate.take(account.metadata.name)
    const { value, hash } = drawValue(this.#ref(id))
    const key = await this.#change(account, id, ({ spec }) => {
      if (spec.state === 'Revoked') throw new Refused('conflict', 'The key is revoked, which is final.')
      if (spec.source?.type !== 'Hash') throw new Refused('conflict', 'The value of this key is in a Secret, and cannot be replaced here.')
      return { ...spec, source: { type: 'Hash', hash }, rotation: { overlapSeconds } }
    })
    return { key, value }
  }

  /** Ends a former value now: a shorter overlap counts from the edit. @throws Refused */
  async endFormerValue(account: Account, id: string): Promise<KeyView> {
    return await this.#change(account, id, ({ spec }) => ({ ...spec, rotation: { overlapSeconds: 0 } }))
  }

  /** The name that the person gave; undefined for a key that is gone. @throws KubeError before the first list */
  displayName(id: string): string | undefined {
    assertListed(this.#deps.apiKeys, this.#deps.namespace, 'ApiKeys')
    return this.#deps.apiKeys.get(this.#ref(id))?.spec.displayName
  }

  #of({ metadata }: Account): ApiKey[] {
    const { apiKeys: cache, namespace } = this.#deps
    assertListed(cache, namespace, 'ApiKeys')
    return [...cache.byIndex(BY_ACCOUNT, metadata.name)].filter((key) => key.metadata.namespace === namespace)
  }

  /** The cache first, and a live read where the cache has nothing, because a new key may not have reached it. */
  async #read(id: string): Promise<ApiKey | undefined> {
    const { kube, apiKeys: cache } = this.#deps
    return cache.get(this.#ref(id)) ?? (await kube.get(apiKeys, this.#ref(id)))
  }

  async #find({ metadata }: Account, id: string): Promise<ApiKey> {
    const key = await this.#read(id)
    if (key === undefined || key.spec.accountRef?.name !== metadata.name) throw notFound()
    return key
  }

  /** Writes a spec over the one that was read: an edit in between is a conflict, and nothing is lost. */
  async #change(account: Account, id: string, specAfter: (key: ApiKey) => ApiKeySpec): Promise<KeyView> {
    const { kube, plans } = this.#deps
    assertListed(plans, '', 'Plans') // the answer needs them: a failure after the write would lose a new value
    const found = await this.#find(account, id)
    if (isManaged(found)) throw new Refused('conflict', 'Your administrator made this key. Ask there for a change.')
    const key = await kube.get(apiKeys, this.#ref(id))
    if (key === undefined) throw notFound()
    try {
      const changed = await kube.patch(apiKeys, this.#ref(id), [
        { op: 'test', path: '/spec', value: key.spec },
        { op: 'replace', path: '/spec', value: specAfter(key) },
      ])
      return this.#view(changed, account)
    } catch (error) {
      if (isKubeError(error, 'Conflict', 'Invalid'))
        throw new Refused('conflict', 'Somebody else has changed the key. Look at it again, then repeat the change.')
      throw error
    }
  }

  /** The operator decides which keys work. This only spares the person a key that it would not accept. */
  #assertRoom(account: Account): void {
    if (account.spec.state !== 'Active') throw new Refused('conflict', 'Your account is suspended, so no key can be made.')
    const { used, most } = this.list(account)
    if (most === undefined) throw new Refused('conflict', `The plan ${account.spec.planRef.name} does not exist. Ask your administrator.`)
    if (used >= most)
      throw new Refused(
        'conflict',
        `Your plan allows ${most} keys, and you have ${used}. Revoke one that is not used, or ask your administrator.`,
      )
  }

  #view(key: ApiKey, account: Account): KeyView {
    return keyView(key, { account, plan: this.#planOf(account), nowMs: this.#deps.clock.now() })
  }

  #planOf({ spec }: Account): Plan | undefined {
    assertListed(this.#deps.plans, '', 'Plans')
    return this.#deps.plans.get({ namespace: '', name: spec.planRef.name })
  }

  #ref(name: string): ObjectRef {
    return { namespace: this.#deps.namespace, name }
  }
}

function alreadyCreated(name: string): Refused {
  return new Refused('conflict', 'Already created. Its value cannot be shown again.', { fields: { key: name } })
}

function accountNames({ spec }: ApiKey): readonly string[] {
  return spec.accountRef === undefined ? [] : [spec.accountRef.name]
}

function isInUse({ wanted, state }: KeyView): boolean {
  return wanted !== 'Revoked' && state !== 'Expired'
}
