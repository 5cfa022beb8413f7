/** The program of `make run` in front of the llama-server of each test. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StandaloneProcess } from '../support/standalone-process.ts'

/** Where each test starts its server. */
const SERVER_URL = 'http://127.0.0.1:8080'
/** Our credential at a server that asks for one, beside the key that the test gave to its server. */
const SERVER_KEY = 'of-the-gateway'
/** The names that the tests put in `model`. llama-server answers to any name. */
const MODEL = 'tinyllama-2'
const ALIASES = [
  'bert-bge-small',
  'davinci-002',
  'gpt-3.5-turbo',
  'gpt-3.5-turbo-instruct',
  'gpt-4.1',
  'jina-reranker',
  'llama-test-model',
  'test',
  'text-embedding-3-small',
  'tinygemma3',
  'tinygemma3-anthropic',
  'tinyllama-2-anthropic',
  'tinyllama-2-tool-call',
]
const NAMESPACE = 'conformance'
const KEY = 'tests'

const VERSION = 'headgate.dev/v1alpha1'
const backend = { name: 'main', url: SERVER_URL, engine: 'LlamaCpp', messages: 'Native', authSecretRef: { name: 'server-key' } }
const MANIFESTS: readonly unknown[] = [
  { apiVersion: VERSION, kind: 'ApiKey', metadata: { name: KEY, namespace: NAMESPACE }, spec: { models: ['*'] } },
  {
    apiVersion: VERSION,
    kind: 'ServedModel',
    metadata: { name: 'tiny', namespace: NAMESPACE },
    spec: { servedName: MODEL, aliases: ALIASES, backends: [backend] },
  },
  {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'server-key',
      namespace: NAMESPACE,
      labels: { 'headgate.dev/upstream-auth': 'true' },
      annotations: { 'headgate.dev/upstream-hosts': '127.0.0.1' },
    },
    type: 'Opaque',
    stringData: { token: SERVER_KEY },
  },
]

export interface FrontGateway {
  /** Without `/v1`. */
  readonly url: string
  readonly credential: string
  readonly serverKey: string
  readonly process: StandaloneProcess
}

/** Starts it, and waits until the key works. @param folder holds its state */
export async function startFrontGateway(folder: string): Promise<FrontGateway> {
  mkdirSync(join(folder, 'manifests'), { recursive: true })
  writeFileSync(join(folder, 'manifests/all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: MANIFESTS }))
  const program = new StandaloneProcess(folder)
  const baseURL = await program.baseURL()
  const credential = program.credential(`${NAMESPACE}/${KEY}`)
  return { url: baseURL.replace(/\/v1$/, ''), credential, serverKey: SERVER_KEY, process: program }
}
