/**
 * The tests' own Kubernetes client: plain JSON, as administrator. It shares no code with the operator's client, so that an
 * error of that client cannot hide itself.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'

/** Any Kubernetes object, as tests read it. */
export interface TestObject {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string; uid?: string; resourceVersion?: string; [field: string]: unknown }
  // eslint-disable-next-line typescript/no-explicit-any -- tests look into specs and statuses of many kinds; `expect` does the checking
  [field: string]: any
}

interface SeenCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly observedGeneration?: number
}

export function conditionsOf(object: TestObject | undefined): readonly SeenCondition[] {
  return object?.['status']?.conditions ?? []
}

/** The condition of the present generation. */
export function conditionOf(object: TestObject | undefined, type: string): SeenCondition | undefined {
  return conditionsOf(object).find((one) => one.type === type && one.observedGeneration === object?.metadata['generation'])
}

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'

export interface WatchEvent {
  readonly type: string
  readonly object: TestObject
}

/** An answer that is not a success. The message holds the server's reason. */
export class ApiRefusal extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.name = 'ApiRefusal'
    this.status = status
  }
}

const PLURALS: Readonly<Record<string, string>> = {
  Ingress: 'ingresses',
  NetworkPolicy: 'networkpolicies',
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
}
const CLUSTER_SCOPED = new Set([
  'Namespace',
  'Plan',
  'Account',
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'Node',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
])

/** User agent of the tests. In the audit log it separates their requests as a ServiceAccount from those of the programs. */
export const USER_AGENT = 'headgate-tests'

/** The URL path of a kind or of one object: `objectPath('v1', 'Secret', 'shop', 'bot')`. */
export function objectPath(apiVersion: string, kind: string, namespace = '', name = ''): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const plural = PLURALS[kind] ?? `${kind.toLowerCase()}s`
  const scope = namespace !== '' && !CLUSTER_SCOPED.has(kind) ? `/namespaces/${namespace}` : ''
  return `${base}${scope}/${plural}${name === '' ? '' : `/${name}`}`
}

/** Calls to one API server. All reject with ApiRefusal when the server says no, with undici's errors when it cannot be reached. */
export class KubeAdmin {
  readonly #server: string
  readonly #agent: Agent
  readonly #authorization: Readonly<Record<string, string>>

  /**
   * @param labDir state folder of `test/parts/control-plane.sh`
   * @param token of a ServiceAccount, to be that one and not the administrator
   */
  constructor(server: string, labDir: string, token?: string) {
    const pki = (file: string) => readFileSync(join(labDir, 'pki', file))
    const certificate = token === undefined ? { cert: pki('admin.crt'), key: pki('admin.key') } : {}
    this.#server = server
    this.#agent = new Agent({ connect: { ca: pki('ca.crt'), ...certificate }, bodyTimeout: 0 })
    this.#authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  }

  /** Server-side apply as manager `test`. */
  async apply(object: TestObject): Promise<TestObject> {
    return this.call('PATCH', `${pathOf(object)}?fieldManager=test&force=true`, object, 'application/apply-patch+yaml')
  }

  async create(object: TestObject): Promise<TestObject> {
    return this.call('POST', objectPath(object.apiVersion, object.kind, object.metadata.namespace), object)
  }

  /** Merge patch (RFC 7386) of one object. */
  async merge(path: string, patch: unknown): Promise<TestObject> {
    return this.call('PATCH', path, patch, 'application/merge-patch+json')
  }

  /** @returns undefined when there is none */
  async get(path: string): Promise<TestObject | undefined> {
    try {
      return await this.call('GET', path)
    } catch (error) {
      if (error instanceof ApiRefusal && error.status === 404) return undefined
      throw error
    }
  }

  async list(path: string): Promise<TestObject[]> {
    const { items } = await this.call('GET', path)
    return items as TestObject[]
  }

  /**
   * Deletes one object, or all of a kind in a namespace. An absent one is fine. The API server deletes a collection one by one and gives up
   * after a minute (504), so the call is repeated for the rest.
   */
  async remove(path: string): Promise<void> {
    try {
      await this.call('DELETE', path)
    } catch (error) {
      if (!(error instanceof ApiRefusal)) throw error
      if (error.status === 504) await this.remove(path)
      else if (error.status !== 404) throw error
    }
  }

  /** The answer as text, for paths without JSON such as `/metrics`. */
  async text(path: string): Promise<string> {
    const answer = await request(this.#server + path, { dispatcher: this.#agent })
    const text = await answer.body.text()
    if (answer.statusCode >= 300) throw new ApiRefusal(answer.statusCode, `GET ${path}: ${answer.statusCode} ${text.slice(0, 2000)}`)
    return text
  }

  /** Repeats a call that the API server puts off (429), as it does with a kind whose definition was established a moment ago. */
  async call(method: Method, path: string, body?: unknown, type?: string): Promise<TestObject> {
    const giveUpMs = performance.now() + 30_000
    let answer = await this.answer(method, path, body, type)
    while (answer.status === 429 && performance.now() < giveUpMs) {
      await sleep(200)
      answer = await this.answer(method, path, body, type)
    }
    const { status, text } = answer
    if (status >= 300) throw new ApiRefusal(status, `${method} ${path}: ${status} ${text.slice(0, 2000)}`)
    return JSON.parse(text) as TestObject
  }

  /** One call, whose answer may be a refusal. */
  async answer(method: Method, path: string, body?: unknown, type = 'application/json'): Promise<{ status: number; text: string }> {
    const answer = await request(this.#server + path, {
      method,
      dispatcher: this.#agent,
      headers: { 'content-type': type, accept: 'application/json', 'user-agent': USER_AGENT, ...this.#authorization },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.statusCode, text: await answer.body.text() }
  }

  /**
   * Calls `see` for each present object and for each change, until `signal` aborts. A busy server ends the watch of a slow client, which then goes on
   * from the last event: one that began with tens of thousands of objects again would be ended again, and never reach the newest ones.
   */
  async watch(path: string, signal: AbortSignal, see: (event: WatchEvent) => void): Promise<void> {
    let from = ''
    const seeEvent = (event: WatchEvent): void => {
      if (event.type === 'ERROR')
        from = '' // the events after `from` are gone
      else from = event.object.metadata.resourceVersion ?? ''
      if (event.type !== 'ERROR' && event.type !== 'BOOKMARK') see(event)
    }
    while (!signal.aborted) {
      try {
        if (from === '') from = await this.#seeAll(path, see)
        await this.#watchFrom(`${path}?watch=1&allowWatchBookmarks=true&resourceVersion=${from}`, signal, seeEvent)
      } catch {
        // ended or unreachable: the next round goes on
      }
      if (!signal.aborted) await sleep(100)
    }
  }

  /** @returns the version of the list */
  async #seeAll(path: string, see: (event: WatchEvent) => void): Promise<string> {
    const list = await this.call('GET', path)
    for (const object of list['items'] as TestObject[]) see({ type: 'ADDED', object })
    return list.metadata.resourceVersion ?? ''
  }

  async #watchFrom(path: string, signal: AbortSignal, see: (event: WatchEvent) => void): Promise<void> {
    const { statusCode, body } = await request(`${this.#server}${path}`, { dispatcher: this.#agent, signal })
    if (statusCode !== 200) return see({ type: 'ERROR', object: (await body.json()) as TestObject })
    for await (const line of createInterface({ input: body })) see(JSON.parse(line) as WatchEvent)
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }
}

function pathOf(object: TestObject): string {
  return objectPath(object.apiVersion, object.kind, object.metadata.namespace, object.metadata.name)
}
