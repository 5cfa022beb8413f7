/**
 * `make python-sdks`: the Python SDKs of OpenAI and Anthropic, LangChain and LlamaIndex, directly against llama-server and through a gateway. Each
 * case must give the same facts both ways. Prints a verdict for each case, and ends with exit code 1 after a difference.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { tableOf } from '../../bench/part.ts'
import { ModelServerPart, UPSTREAM_MODEL } from '../../support/model-server-part.ts'
import { runPrepared } from '../../support/prepared-namespace.ts'
import { StandaloneProcess } from '../../support/standalone-process.ts'
import { type CaseLine, failuresOf, rowsOf } from './verdicts.ts'

const ROOT = join(import.meta.dirname, '../../..')
const CHAT = 'sdk-model'
const EMBEDDINGS = 'sdk-embedder'

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** Where the cases call, by the variables that `sdk_cases.py` reads. */
type Where = Readonly<Record<'OPENAI_URL' | 'ANTHROPIC_URL' | 'EMBEDDINGS_URL' | 'API_KEY' | 'MODEL' | 'EMBEDDINGS_MODEL', string>>

async function main(python: string): Promise<number> {
  const folder = join(ROOT, '.headgate/python-sdks', new Date().toISOString().replaceAll(/[:.]/g, '-'))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  await using parts = new AsyncDisposableStack()
  const [chat, embeddings] = await Promise.all([
    ModelServerPart.start(folder, '127.0.0.1'),
    ModelServerPart.start(folder, '127.0.0.1', 'embeddings'),
  ])
  for (const server of [chat, embeddings]) parts.defer(() => server.stop())
  const directly: Where = {
    OPENAI_URL: `${chat.url}/v1`,
    ANTHROPIC_URL: chat.url,
    EMBEDDINGS_URL: `${embeddings.url}/v1`,
    API_KEY: 'none-needed',
    MODEL: UPSTREAM_MODEL,
    EMBEDDINGS_MODEL: UPSTREAM_MODEL,
  }
  const through = await startGateway(join(folder, 'standalone'), chat.url, embeddings.url, parts)
  const direct = await runCases(python, join(folder, 'direct.log'), 'direct', directly)
  const gateway = await runCases(python, join(folder, 'gateway.log'), 'gateway', through)
  for (const line of ['', ...tableOf(rowsOf(direct, gateway)), '']) say(line)
  const failures = failuresOf(direct, gateway)
  for (const line of failures) say(`FAILED: ${line}`)
  say(`python-sdks: ${direct.length} cases, ${failures.length} differ; logs are in ${folder}`)
  return failures.length > 0 || direct.length === 0 ? 1 : 0
}

async function startGateway(folder: string, chatURL: string, embeddingsURL: string, parts: AsyncDisposableStack): Promise<Where> {
  const apiVersion = 'headgate.dev/v1alpha1'
  const namespace = 'sdks'
  const model = (name: string, url: string): object => ({
    apiVersion,
    kind: 'ServedModel',
    metadata: { name, namespace },
    spec: { backends: [{ name: 'main', url, upstreamModel: UPSTREAM_MODEL, engine: 'LlamaCpp', messages: 'Native' }] },
  })
  const key = { apiVersion, kind: 'ApiKey', metadata: { name: 'cases', namespace }, spec: { models: ['*'] } }
  mkdirSync(join(folder, 'manifests'), { recursive: true })
  const items = [model(CHAT, chatURL), model(EMBEDDINGS, embeddingsURL), key]
  writeFileSync(join(folder, 'manifests/all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  const program = new StandaloneProcess(folder)
  parts.defer(async () => {
    await program.stop()
    rmSync(folder, { recursive: true, force: true }) // holds the key
  })
  const baseURL = await program.baseURL()
  return {
    OPENAI_URL: baseURL,
    ANTHROPIC_URL: baseURL.replace(/\/v1$/, ''),
    EMBEDDINGS_URL: baseURL,
    API_KEY: program.credential(`${namespace}/cases`),
    MODEL: CHAT,
    EMBEDDINGS_MODEL: EMBEDDINGS,
  }
}

async function runCases(python: string, logFile: string, name: string, where: Where): Promise<CaseLine[]> {
  const log = openSync(logFile, 'w', 0o600)
  const child = spawn(python, [join(import.meta.dirname, 'sdk_cases.py')], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], PYTHONDONTWRITEBYTECODE: '1', ...where },
    stdio: ['ignore', 'pipe', log],
  })
  closeSync(log)
  const ended = once(child, 'close')
  const lines: CaseLine[] = []
  for await (const line of createInterface({ input: child.stdout as Readable })) {
    const one = JSON.parse(line) as CaseLine // the program wrote it
    lines.push(one)
    say(`${name}: ${one.error === undefined ? 'ok' : 'error'}: ${one.case}`)
  }
  const [code] = (await ended) as [number | null]
  if (code !== 0) throw new Error(`${name}: the cases ended with code ${code}; see ${logFile}`)
  return lines
}

if (import.meta.main) {
  const prepare = join(import.meta.dirname, 'prepare.sh')
  process.exitCode = await runPrepared({ script: import.meta.filename, args: [], prepare, run: main })
}
