/** The model servers of the agents: llama-server with the tiny model, three times. */
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { ManagedProcess } from '../support/managed-process.ts'
import { waitFor } from '../support/wait-for.ts'

export const LLAMA = 'llama'
/** Claude Code's prompt with all its tools is 43,000 tokens of the tiny model's alphabet. */
const CONTEXT_TOKENS = 131_072
const TEMPLATE = join(import.meta.dirname, 'tool-template.jinja')

/** Arguments of each server; the prompts of one server use one slot, so that each finds the one before in the cache. */
const SERVERS = {
  plain: ['--ctx-size', String(CONTEXT_TOKENS)],
  /** Has a template with tools, which `ForcedModel` needs. */
  forced: ['--ctx-size', String(CONTEXT_TOKENS), '--chat-template-file', TEMPLATE],
  /**
   * Claude Code's first prompts fit, and the later ones of a conversation do not. The bias is for the token that ends an answer, so answers are short.
   * The grammar keeps answers from being empty: Claude Code calls an empty summary a failure.
   */
  small: ['--ctx-size', '30000', '--logit-bias', '2+3', '--grammar', 'root ::= [a-z]+'],
} as const

type Name = keyof typeof SERVERS

export class LlamaServers {
  readonly #processes: readonly ManagedProcess[]
  /** Addresses. */
  readonly urls: Readonly<Record<Name, string>>

  private constructor(started: ReadonlyArray<Readonly<{ name: Name; url: string; process: ManagedProcess }>>) {
    this.#processes = started.map(({ process }) => process)
    this.urls = Object.fromEntries(started.map(({ name, url }) => [name, url])) as Record<Name, string> // started by these names
  }

  /** @param home where llama-server was built @param folder gets the logs */
  static async start(home: string, folder: string): Promise<LlamaServers> {
    const names = Object.keys(SERVERS) as Name[]
    return new LlamaServers(await Promise.all(names.map((name) => startServer(name, home, folder))))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.stop()))
  }
}

async function startServer(name: Name, home: string, folder: string): Promise<{ name: Name; url: string; process: ManagedProcess }> {
  const port = await freePort()
  const common = ['--parallel', '1', '--threads', '1', '--no-warmup', '--jinja', '--host', '127.0.0.1', '--port', String(port)]
  const argv = [join(home, 'build/bin/llama-server'), '--model', join(home, 'tiny.gguf'), '--alias', LLAMA, ...common, ...SERVERS[name]]
  const process = new ManagedProcess({ name: `llama-server-${name}`, argv, env: {}, logFile: join(folder, `llama-server-${name}.log`) })
  await process.start()
  const url = `http://127.0.0.1:${port}`
  await waitFor(`llama-server ${name} to be healthy`, async () => (await fetch(`${url}/health`)).ok)
  return { name, url, process }
}
