/**
 * One tenant beside another one that is a burden: 3,000 ServedModels of one name, in one namespace and over many, and a namespace behind a slow
 * admission webhook. Measures how long a new key, a revocation and a rotation of the other tenant take, each ÷ its usual time.
 */
import { hash, randomBytes } from 'node:crypto'
import { atOnce, numbered } from '../support/at-once.ts'
import type { ControlPlane } from '../support/control-plane.ts'
import { type TestObject } from '../support/kube-admin.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'
import { clonesOf } from './gateways.ts'
import { GROUP, keyManifest, type KeyName, KeyWatch, untilIdle, WIDTH, withControlPlane, withStack } from './many-keys.ts'
import { type BenchSite, type Bound, breaks, median, type PartResult, quantile, shown, tableOf } from './part.ts'
import { Prober } from './prober.ts'
import { slowWebhook, SLOW_MS } from './slow-webhook.ts'

/** Median beside the burden ÷ median of the usual times. */
const RATIO: Bound = { must: 2 }
/** Minimum and maximum number of repeats of each phase. */
const [MIN_REPEATS, MAX_REPEATS] = [5, 40]
/** Calls in flight of the client that makes the burden: more would measure how busy the API server is. */
const BURDEN_WIDTH = 8
const NAMESPACES = 50

const ACTIONS = ['new key', 'revocation', 'rotation'] as const
type Action = (typeof ACTIONS)[number]
type Times = Record<Action, number[]>
/** `UNSEEN`: the same objects are made in a namespace that the operator does not watch. What that costs, the API server costs, and nobody else. */
const UNSEEN = 'unseen ones created'
const USUAL = 'usual'

interface Burden {
  readonly name: string
  /** How many namespaces it has. */
  readonly namespaces: number
  /** Makes all of it. */
  readonly make: (stack: Stack, namespaces: readonly string[]) => Promise<void>
  /** Called before `make`, with the first namespace. @returns removes what it has made outside of the stack */
  readonly prepare?: (plane: ControlPlane, namespace: string) => Promise<() => Promise<void>>
  /** Whether the operator has work with it for long after it was made. */
  readonly isLasting?: boolean
  /** Whether the same objects are made first where the operator does not see them. */
  readonly hasControl?: boolean
}

interface Measured {
  readonly burden: string
  readonly phases: ReadonlyArray<{ readonly phase: string; readonly times: Times }>
}

export async function tenantsPart(site: BenchSite): Promise<PartResult> {
  const [{ dist }] = clonesOf(site)
  const measured: Measured[] = []
  for (const [at, burden] of burdens(site.isQuick).entries()) {
    site.say(`tenants: ${burden.name}`)
    const name = `tenants-${at}`
    const heavy = numbered(`${name}-heavy`, burden.namespaces)
    const operatorEnv = { MAX_SERVED_MODELS_PER_NAMESPACE: '100000' }
    measured.push(
      await withControlPlane(site, `${name}-plane`, (plane) =>
        withStack(site, { plane, dist, name, namespaces: [name, ...heavy], operatorEnv }, (stack) => measure(stack, burden, heavy)),
      ),
    )
  }
  return report(measured)
}

function burdens(isQuick: boolean): readonly Burden[] {
  const [models, keys] = isQuick ? [200, 60] : [3_000, 300]
  const makeModels = async (stack: Stack, namespaces: readonly string[]): Promise<void> => {
    const place = (at: number): string => namespaces[at % namespaces.length] ?? ''
    await atOnce(numbered('same', models), (name, at) => stack.kube.create(modelManifest(name, place(at))), BURDEN_WIDTH)
  }
  return [
    { name: `${models} ServedModels of one name in one namespace`, namespaces: 1, make: makeModels, hasControl: true },
    { name: `${models} ServedModels of one name over ${NAMESPACES} namespaces`, namespaces: NAMESPACES, make: makeModels },
    {
      name: `${keys} ApiKeys in a namespace behind a webhook that takes ${SLOW_MS / 1_000} s`,
      namespaces: 1,
      prepare: slowWebhook,
      make: async ({ kube }, [namespace = '']) => {
        await atOnce(numbered('slow', keys), (name) => kube.create(keyManifest({ namespace, name })), BURDEN_WIDTH)
      },
      isLasting: true,
    },
  ]
}

function modelManifest(name: string, namespace: string): TestObject {
  const backends = [{ name: 'one', url: 'http://10.250.9.9:8000' }] // never called
  const spec = { servedName: 'shared-llm', aliases: numbered('alias', 16), backends }
  return { apiVersion: GROUP, kind: 'ServedModel', metadata: { name, namespace }, spec }
}

async function measure(stack: Stack, burden: Burden, heavy: readonly string[]): Promise<Measured> {
  const watch = new KeyWatch(stack.kube, [stack.namespace])
  const prober = new Prober(stack)
  const tenant = new Tenant(stack, prober, watch)
  let remove = async (): Promise<void> => undefined
  try {
    await tenant.prepare()
    const phases = [{ phase: USUAL, times: await tenant.repeat(MIN_REPEATS, 2 * MIN_REPEATS) }]
    if (burden.hasControl === true) phases.push({ phase: UNSEEN, times: await besideUnseen(stack, burden, tenant) })
    remove = (await burden.prepare?.(stack.site.plane, heavy[0] ?? '')) ?? remove
    phases.push({ phase: 'while created', times: await tenant.repeatWhile(() => burden.make(stack, heavy)) })
    if (burden.isLasting !== true) await untilIdle(stack.operator)
    phases.push({ phase: 'while they stand', times: await tenant.repeat(MIN_REPEATS, 2 * MIN_REPEATS) })
    await prober.close()
    return { burden: burden.name, phases }
  } finally {
    await remove()
    watch.stop()
    await prober.stop()
  }
}

async function besideUnseen(stack: Stack, burden: Burden, tenant: Tenant): Promise<Times> {
  const unseen = `${stack.namespace}-unseen`
  await stack.site.plane.namespace(unseen)
  return await tenant.repeatWhile(() => burden.make(stack, [unseen]))
}

/** The other tenant. */
class Tenant {
  readonly #stack: Stack
  readonly #prober: Prober
  readonly #keys: KeyWatch
  /** Keys with a hash; each is rotated once, since edits of one key make at most one revision a second. */
  readonly #rotated: KeyName[]
  #count = 0

  constructor(stack: Stack, prober: Prober, keys: KeyWatch) {
    this.#stack = stack
    this.#prober = prober
    this.#keys = keys
    this.#rotated = numbered('rotated', 4 * MIN_REPEATS + 2 * MAX_REPEATS).map((name) => ({ namespace: stack.namespace, name }))
  }

  async prepare(): Promise<void> {
    const source = () => ({ type: 'Hash', hash: { sha256: sha256Of(newValue()) } })
    await atOnce(this.#rotated, (key) => this.#stack.kube.create(keyManifest(key, { source: source() })), WIDTH)
    await this.#keys.untilReady(this.#rotated)
  }

  /** Repeats until the work is done. */
  async repeatWhile(work: () => Promise<void>): Promise<Times> {
    let isOver = false
    const working = work().finally(() => (isOver = true))
    working.catch(() => undefined) // awaited below, after the probes
    const times = await this.repeat(MIN_REPEATS, MAX_REPEATS, () => !isOver)
    await working
    return times
  }

  /** @param goesOn whether to go on after the fewest repeats */
  async repeat(least: number, most: number, goesOn: () => boolean = () => true): Promise<Times> {
    const times: Times = { 'new key': [], revocation: [], rotation: [] }
    for (let at = 0; at < most && (at < least || goesOn()); at += 1) {
      const key = { namespace: this.#stack.namespace, name: `fresh-${(this.#count += 1)}` }
      times['new key'].push(await this.#prober.issue(key, keyManifest(key)))
      await waitFor(`the value of ${key.name}`, () => this.#keys.progress([key]).issued === 1)
      times.revocation.push(await this.#prober.end(key, this.#keys.credential(key), 'delete'))
      const next = this.#rotated.pop()
      if (next === undefined) break
      const value = newValue()
      times.rotation.push(await this.#prober.rotate(next, value, sha256Of(value)))
    }
    return times
  }
}

const newValue = (): string => `sk-bench-${randomBytes(24).toString('hex')}`
const sha256Of = (value: string): string => hash('sha256', value, 'hex')

function report(measured: readonly Measured[]): PartResult {
  const ratios = measured.flatMap(({ burden, phases: [usual, ...busy] }) =>
    busy.flatMap(({ phase, times }) =>
      ACTIONS.map((action) => {
        const base = median(usual?.times[action] ?? [])
        return { burden, phase, action, base, values: times[action].map((ms) => ms / base) }
      }),
    ),
  )
  const rows = ratios.map(({ burden, phase, action, base, values }, at) => ({
    '': ratios[at - 1]?.burden === burden ? '' : String(1 + measured.findIndex((one) => one.burden === burden)),
    phase,
    action,
    'usual ms': base.toFixed(0),
    min: quantile(values, 0).toFixed(2),
    max: quantile(values, 1).toFixed(2),
    repeats: String(values.length),
    median: phase === UNSEEN ? median(values).toFixed(2) : shown(median(values), RATIO, '', 2),
  }))
  return {
    lines: [
      "A tenant beside another one, times ÷ the median of its usual times. From the API server's answer until every gateway admits the new value, or refuses the old key.",
      ...measured.map(({ burden }, at) => `  ${at + 1}: ${burden}`),
      ...tableOf(rows),
    ],
    isMissed: ratios.some(({ phase, values }) => phase !== UNSEEN && breaks(RATIO, median(values))),
    data: measured,
  }
}
