/** Follows many ApiKeys and their Secrets as a client, by one watch per kind and namespace. */
import { objectPath, type KubeAdmin, type TestObject, type WatchEvent } from '../support/kube-admin.ts'
import { waitFor } from '../support/wait-for.ts'

/** API version of our kinds. */
export const GROUP = 'headgate.dev/v1alpha1'

/** One ApiKey by name. */
export interface KeyName {
  readonly namespace: string
  readonly name: string
}

interface SeenCondition {
  readonly type: string
  readonly status: string
  readonly observedGeneration?: number
}

/** Follows ApiKeys and Secrets of some namespaces until `stop`. */
export class KeyWatch {
  readonly #stop = new AbortController()
  readonly #credentials = new Map<string, string>()
  readonly #described = new Set<string>()
  readonly #ready = new Set<string>()

  constructor(kube: KubeAdmin, namespaces: readonly string[]) {
    const follow = (apiVersion: string, kind: string, namespace: string, see: (event: WatchEvent) => void): void =>
      void kube.watch(objectPath(apiVersion, kind, namespace), this.#stop.signal, see)
    for (const namespace of namespaces) {
      follow(GROUP, 'ApiKey', namespace, ({ object }) => this.#seeKey(object))
      follow('v1', 'Secret', namespace, ({ object }) => this.#seeSecret(object))
    }
  }

  /** The value in the Secret of a key; undefined when there is none yet. */
  credential(key: KeyName): string | undefined {
    return this.#credentials.get(idOf(key))
  }

  /** Counts the keys that have a Secret, those with a status of the present generation, and those with Ready=True so far. */
  progress(keys: readonly KeyName[]): { readonly issued: number; readonly described: number; readonly ready: number } {
    const count = (seen: ReadonlySet<string> | ReadonlyMap<string, string>): number => keys.filter((key) => seen.has(idOf(key))).length
    return { issued: count(this.#credentials), described: count(this.#described), ready: count(this.#ready) }
  }

  /** Waits until every one of these keys is Ready. */
  async untilReady(keys: readonly KeyName[], deadlineMs: number): Promise<void> {
    await waitFor(`${keys.length} ApiKeys to be Ready`, () => this.progress(keys).ready === keys.length, { deadlineMs, everyMs: 20 })
  }

  stop(): void {
    this.#stop.abort()
  }

  #seeKey({ metadata, status }: TestObject): void {
    const id = idOf(metadata)
    if (status?.observedGeneration === metadata['generation']) this.#described.add(id)
    const conditions = (status?.conditions ?? []) as readonly SeenCondition[]
    if (conditions.some((one) => one.type === 'Ready' && one.status === 'True' && one.observedGeneration === metadata['generation']))
      this.#ready.add(id)
  }

  #seeSecret({ metadata, data }: TestObject): void {
    const text = (data as Record<string, string> | undefined)?.['SERVICE_API_KEY']
    if (text !== undefined) this.#credentials.set(idOf(metadata), Buffer.from(text, 'base64').toString())
  }
}

function idOf({ namespace = '', name }: { readonly namespace?: string; readonly name: string }): string {
  return `${namespace}/${name}`
}

/** The manifest of a key that may use every model. */
export function keyManifest({ namespace, name }: KeyName): TestObject {
  return { apiVersion: GROUP, kind: 'ApiKey', metadata: { name, namespace }, spec: { models: ['*'] } }
}

/** URL path of a key. */
export function keyPath({ namespace, name }: KeyName): string {
  return objectPath(GROUP, 'ApiKey', namespace, name)
}
