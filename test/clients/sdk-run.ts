/** Runs the cases of SDKs directly against model servers and through a gateway. Each case must give the same facts both ways. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { tableOf } from '../bench/part.ts'
import { withCheckedStreams } from '../support/checked-streams.ts'
import { ENDS_AFTER_CALL, ModelServerPart, UPSTREAM_MODEL } from '../support/model-server-part.ts'
import { CONVERSATIONS } from '../support/sdk-cases/conversations.ts'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { CUT_MODEL, ScriptedModel } from './scripted-model.ts'
import { type CaseLine, failuresOf, rowsOf } from './verdicts.ts'

const ROOT = join(import.meta.dirname, '../..')
const NAMESPACE = 'sdks'
const CHAT = 'sdk-model'
const TRANSLATED = 'sdk-translated'
const CALLER = 'sdk-caller'
const EMBEDDINGS = 'sdk-embedder'
const SCRIPTED = 'sdk-scripted'

export const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** A program that runs the cases, and prints a line of JSON for each. */
export interface SdkProgram {
  /** Of the make target; the logs are in a folder of this name. */
  readonly name: string
  /** @param folder of this run */
  readonly argv: (folder: string) => readonly [command: string, ...args: string[]]
  /** Whether its cases stream Messages. */
  readonly hasMessages: boolean
}

/** Where the cases call, by the variables that the programs read. `OPENAI_URL`, `EMBEDDINGS_URL` and `SCRIPTED_URL` end in `/v1`. */
interface Where {
  readonly OPENAI_URL: string
  readonly ANTHROPIC_URL: string
  readonly EMBEDDINGS_URL: string
  readonly SCRIPTED_URL: string
  readonly API_KEY: string
  readonly MODEL: string
  /** Speaks Messages directly, and is translated behind the gateway. */
  readonly TRANSLATED_MODEL: string
  /** Makes the calls of tools that a conversation demands; translated behind the gateway, too. */
  readonly CALLER_MODEL: string
  /** A server of Messages that serves `CALLER_MODEL`. */
  readonly CALLER_URL: string
  /** A file with the transcript: requests, and the number of calls in each answer. */
  readonly CONVERSATIONS: string
  readonly EMBEDDINGS_MODEL: string
  readonly SCRIPTED_MODEL: string
  readonly CUT_MODEL: string
}

/** Prints a verdict for each case. @returns the exit code: 1 after a difference */
export async function runSdks(program: SdkProgram): Promise<number> {
  const folder = join(ROOT, '.headgate', program.name, new Date().toISOString().replaceAll(/[:.]/g, '-'))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return withCheckedStreams({ folder, mustHaveSome: program.hasMessages, run: () => runBoth(program, folder) })
}

async function runBoth({ name, argv }: SdkProgram, folder: string): Promise<number> {
  await using parts = new AsyncDisposableStack()
  const servers = await startServers(folder, parts)
  const gateway = await startGateway(join(folder, 'standalone'), servers, parts)
  const command = argv(folder)
  const direct = await runCases(command, join(folder, 'direct.log'), 'direct', servers)
  const through = await runCases(command, join(folder, 'gateway.log'), 'gateway', gateway)
  for (const line of ['', ...tableOf(rowsOf(direct, through)), '']) say(line)
  const failures = failuresOf(direct, through)
  for (const line of failures) say(`FAILED: ${line}`)
  say(`${name}: ${direct.length} cases, ${failures.length} differ; logs are in ${folder}`)
  return failures.length > 0 || direct.length === 0 ? 1 : 0
}

async function startServers(folder: string, parts: AsyncDisposableStack): Promise<Where> {
  const [chat, caller, embeddings, scripted] = await Promise.all([
    ModelServerPart.start(folder, '127.0.0.1'),
    ModelServerPart.startCaller(folder, '127.0.0.1', ENDS_AFTER_CALL),
    ModelServerPart.start(folder, '127.0.0.1', 'embeddings'),
    ScriptedModel.start(),
  ])
  for (const server of [chat, caller, embeddings, scripted]) parts.defer(() => server.stop())
  const conversations = join(folder, 'conversations.json')
  writeFileSync(conversations, JSON.stringify(CONVERSATIONS.map(({ request, calls }) => ({ request, calls }))))
  return {
    OPENAI_URL: `${chat.url}/v1`,
    ANTHROPIC_URL: chat.url,
    EMBEDDINGS_URL: `${embeddings.url}/v1`,
    SCRIPTED_URL: `${scripted.url}/v1`,
    API_KEY: 'none-needed',
    MODEL: UPSTREAM_MODEL,
    TRANSLATED_MODEL: UPSTREAM_MODEL,
    CALLER_MODEL: UPSTREAM_MODEL,
    CALLER_URL: caller.url,
    CONVERSATIONS: conversations,
    EMBEDDINGS_MODEL: UPSTREAM_MODEL,
    SCRIPTED_MODEL: SCRIPTED,
    CUT_MODEL,
  }
}

async function startGateway(folder: string, servers: Where, parts: AsyncDisposableStack): Promise<Where> {
  const apiVersion = 'headgate.dev/v1alpha1'
  const namespace = NAMESPACE
  const model = (name: string, baseURL: string, upstreamModel = name, messages = 'Native'): object => ({
    apiVersion,
    kind: 'ServedModel',
    metadata: { name, namespace },
    spec: {
      backends: [{ name: 'main', url: baseURL.replace(/\/v1$/, ''), upstreamModel, engine: 'LlamaCpp', messages }],
    },
  })
  const key = { apiVersion, kind: 'ApiKey', metadata: { name: 'cases', namespace }, spec: { models: ['*'] } }
  mkdirSync(join(folder, 'manifests'), { recursive: true })
  const translated = model(TRANSLATED, servers.OPENAI_URL, UPSTREAM_MODEL, 'Translate')
  const caller = model(CALLER, servers.CALLER_URL, UPSTREAM_MODEL, 'Translate')
  const real = [
    model(CHAT, servers.OPENAI_URL, UPSTREAM_MODEL),
    translated,
    caller,
    model(EMBEDDINGS, servers.EMBEDDINGS_URL, UPSTREAM_MODEL),
  ]
  const scripted = [model(SCRIPTED, servers.SCRIPTED_URL), model(CUT_MODEL, servers.SCRIPTED_URL)]
  const list = { apiVersion: 'v1', kind: 'List', items: [...real, ...scripted, key] }
  writeFileSync(join(folder, 'manifests/all.json'), JSON.stringify(list))
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
    SCRIPTED_URL: baseURL,
    API_KEY: program.credential(`${namespace}/cases`),
    MODEL: CHAT,
    TRANSLATED_MODEL: TRANSLATED,
    CALLER_MODEL: CALLER,
    CALLER_URL: baseURL.replace(/\/v1$/, ''),
    CONVERSATIONS: servers.CONVERSATIONS,
    EMBEDDINGS_MODEL: EMBEDDINGS,
    SCRIPTED_MODEL: SCRIPTED,
    CUT_MODEL,
  }
}

async function runCases(
  [command, ...args]: readonly [string, ...string[]],
  logFile: string,
  name: string,
  where: Where,
): Promise<CaseLine[]> {
  const log = openSync(logFile, 'w', 0o600)
  const child = spawn(command, args, {
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
