/** What one agent talks to: a gateway of its own with keys in the states of the cases, a scripted model server, and llama-server. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { waitFor } from '../support/wait-for.ts'
import { ForcedModel, type ForcedTurn } from './forced-model.ts'
import { LLAMA, type LlamaServers } from './llama-servers.ts'
import { CUT_MODEL, ScriptedModel, type SeenRequest } from './scripted-model.ts'
import { FULL_MODEL, FULL_TRANSLATED_MODEL } from './scripted-replies.ts'

const NAMESPACE = 'agents'
export const SCRIPTED = 'script'
/** The same server, as one that speaks chat completions alone. */
export const TRANSLATED = 'translated'
/** llama-server behind a `ForcedModel`, translated. */
export const FORCED = 'forced'
/** llama-server with a small context. */
export const SMALL = 'small-context'
export const SMALL_TRANSLATED = 'small-context-translated'

/** The keys by name, with their specs. */
const KEYS = {
  good: { models: ['*'] },
  suspended: { models: ['*'] },
  narrow: { models: ['another-model'] },
  /** Used up by one call of the scripted model. */
  spent: { models: ['*'], budgets: [{ name: 'life', amount: '1000', unit: 'Tokens', window: 'Lifetime' }] },
  /** Never used; too small for any call of an agent. */
  small: { models: ['*'], budgets: [{ name: 'life', amount: '30', unit: 'Tokens', window: 'Lifetime' }] },
  limited: { models: ['*'], limits: { requestsPerMinute: 1 } },
} as const

export type KeyName = keyof typeof KEYS

/** A request at the gateway, as its access log has it. */
export interface WireRequest {
  readonly method: string
  readonly path: string
  readonly status: number
}

export class AgentWorld {
  readonly scripted: ScriptedModel
  readonly #forced: ForcedModel
  readonly #urls: LlamaServers['urls']
  readonly #folder: string
  readonly #program: StandaloneProcess
  #read = 0
  #fences = 0

  private constructor(folder: string, scripted: ScriptedModel, forced: ForcedModel, urls: LlamaServers['urls']) {
    this.#folder = folder
    this.scripted = scripted
    this.#forced = forced
    this.#urls = urls
    this.#writeManifests({})
    this.#program = new StandaloneProcess(folder)
  }

  static async start(folder: string, { urls }: LlamaServers): Promise<AgentWorld> {
    mkdirSync(join(folder, 'manifests'), { recursive: true })
    const world = new AgentWorld(folder, await ScriptedModel.start(), await ForcedModel.start(urls.forced), urls)
    await world.url()
    return world
  }

  /** Without `/v1`. */
  async url(): Promise<string> {
    return (await this.#program.baseURL()).replace(/\/v1$/, '')
  }

  /** The value of a key, in the state that its name says. */
  async credential(name: KeyName): Promise<string> {
    const value = this.#program.credential(`${NAMESPACE}/${name}`)
    if (name === 'suspended') {
      this.#writeManifests({ suspended: { state: 'Suspended' } })
      await waitFor('the key to be refused', async () => (await this.#call(value)) === 401)
    }
    if (name === 'spent') await waitFor('the budget to be used up', async () => (await this.#call(value)) === 402)
    if (name === 'limited') await this.#call(value)
    return value
  }

  /** The requests of models and counts since the last call. */
  async takeWire(): Promise<WireRequest[]> {
    const fence = `/fence-${(this.#fences += 1)}`
    await fetch(`${await this.url()}${fence}`) // lines are written in the order of the ends of requests
    await this.#program.printed(new RegExp(`${fence}\\b`))
    const output = this.#program.output
    const lines = output.slice(this.#read).split('\n')
    this.#read = output.length
    return lines.flatMap(wireRequest).filter(({ method, path }) => method === 'POST' && path !== fence)
  }

  /** The address of the model server of a model. */
  serverOf(model: string): string {
    return model === LLAMA ? this.#urls.plain : this.scripted.url
  }

  /** What the model servers received since the last call. */
  takeSeen(): { readonly seen: SeenRequest[]; readonly turns: ForcedTurn[] } {
    return { seen: this.scripted.takeSeen(), turns: this.#forced.takeTurns() }
  }

  async stop(): Promise<void> {
    await this.#program.stop()
    await this.#forced.stop()
    await this.scripted.stop()
    writeFileSync(`${this.#folder}.log`, this.#program.output)
    rmSync(this.#folder, { recursive: true, force: true }) // holds the keys
  }

  async #call(credential: string): Promise<number> {
    const body = { model: SCRIPTED, max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] }
    const response = await fetch(`${await this.url()}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    await response.arrayBuffer()
    return response.status
  }

  #writeManifests(changes: Readonly<Partial<Record<KeyName, object>>>): void {
    const apiVersion = 'headgate.dev/v1alpha1'
    const keys = Object.entries(KEYS).map(([name, spec]) => ({
      apiVersion,
      kind: 'ApiKey',
      metadata: { name, namespace: NAMESPACE },
      spec: { ...spec, ...changes[name as KeyName] }, // the names are those of KEYS
    }))
    const model = (name: string, url: string, messages = 'Native'): object => ({
      apiVersion,
      kind: 'ServedModel',
      metadata: { name, namespace: NAMESPACE },
      spec: { servedName: name, maxOutputTokens: 64_000, backends: [{ name: 'main', url, engine: 'LlamaCpp', messages }] },
    })
    const { url } = this.scripted
    const translated = [TRANSLATED, FULL_TRANSLATED_MODEL].map((name) => model(name, url, 'Translate'))
    const { plain, small } = this.#urls
    const real = [
      ...[model(LLAMA, plain), model(FORCED, this.#forced.url, 'Translate')],
      ...[model(SMALL, small), model(SMALL_TRANSLATED, small, 'Translate')],
    ]
    const models = [...[SCRIPTED, CUT_MODEL, FULL_MODEL].map((name) => model(name, url)), ...translated, ...real]
    const list = { apiVersion: 'v1', kind: 'List', items: [...keys, ...models] }
    writeFileSync(join(this.#folder, 'manifests/all.json'), JSON.stringify(list))
  }
}

/** The request of a line of the access log; none for another line. */
function wireRequest(line: string): WireRequest[] {
  if (!line.startsWith('{')) return []
  try {
    const {
      msg,
      method = '',
      route = '',
      path,
      status = 0,
    } = JSON.parse(line) as Partial<Record<'msg' | 'method' | 'route' | 'path', string>> & {
      status?: number
    } // our own log
    return msg === 'request' || msg === 'request failed' ? [{ method, path: path ?? route, status }] : []
  } catch {
    return [] // cut by the end of the output
  }
}
