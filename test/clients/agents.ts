/** The coding agents: how each is set up and started, and which part of its output a person reads. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { claudeEvents } from './claude-events.ts'

/** What an agent is told. */
export interface AgentSetting {
  /** Without `/v1`. */
  readonly url: string
  readonly credential: string
  readonly model: string
}

export interface Agent {
  readonly name: string
  /** npm package with the version. */
  readonly packageName: string
  /** Path of the program below `node_modules`, by the name that npm gives to this machine's processor. */
  readonly program: (arch: string) => string
  readonly args: (prompt: string) => readonly string[]
  readonly env: (setting: AgentSetting) => Readonly<Record<string, string>>
  /** Writes the settings that are files. The agent starts in `home/work`. */
  readonly writeFiles: (home: string, setting: AgentSetting) => void
  /** For a conversation of several prompts: a line of standard input for a prompt, and whether a line of the output ends the work for it. */
  readonly talk?: { readonly line: (prompt: string) => string; readonly isAnswer: (line: string) => boolean }
  /** What a person reads, of the output without colours: the answer or the error. */
  readonly shown: (stdout: string, stderr: string) => string
}

const KEY_VARIABLE = 'SERVICE_API_KEY'
const MUSL = { x64: 'x86_64-unknown-linux-musl', arm64: 'aarch64-unknown-linux-musl' }

const claudeCode: Agent = {
  name: 'Claude Code',
  packageName: '@anthropic-ai/claude-code',
  program: (arch) => `@anthropic-ai/claude-code-linux-${arch}/claude`,
  args: (prompt) => ['--print', prompt, '--allowedTools', 'Bash'],
  env: ({ url, credential, model }) => ({
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_AUTH_TOKEN: credential,
    ANTHROPIC_MODEL: model,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  }),
  writeFiles: () => undefined,
  shown: (stdout) => stdout,
}

const FORCED_TOOLS = 'Bash,Edit,Read,Write'
const STREAM_JSON = ['--verbose', '--input-format', 'stream-json', '--output-format', 'stream-json']

/** Claude Code in a conversation of several turns. It prints every event of the conversation as JSON. */
export const claudeCodeTalking: Agent = {
  ...claudeCode,
  args: () => ['--print', ...STREAM_JSON, '--tools', FORCED_TOOLS, '--allowedTools', FORCED_TOOLS],
  talk: {
    line: (content) => `${JSON.stringify({ type: 'user', message: { role: 'user', content } })}\n`,
    isAnswer: (line) => claudeEvents(line).answers.length > 0,
  },
  shown: (stdout) => claudeEvents(stdout).answers.at(-1)?.result ?? '',
}

const codex: Agent = {
  name: 'Codex',
  packageName: '@openai/codex',
  program: (arch) => `@openai/codex-linux-${arch}/vendor/${arch === 'arm64' ? MUSL.arm64 : MUSL.x64}/bin/codex`,
  args: (prompt) => ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
  env: ({ credential }) => ({ [KEY_VARIABLE]: credential }),
  writeFiles(home, { url, model }) {
    mkdirSync(join(home, '.codex'))
    const provider = ['name = "Headgate"', `base_url = "${url}/v1"`, `env_key = "${KEY_VARIABLE}"`, 'wire_api = "responses"']
    const lines = [`model = "${model}"`, 'model_provider = "headgate"', '', '[model_providers.headgate]', ...provider]
    writeFileSync(join(home, '.codex/config.toml'), `${lines.join('\n')}\n`)
  },
  shown: (stdout, stderr) => (stdout.trim() === '' ? (linesWith(stderr, /^ERROR: /).at(-1) ?? '') : stdout),
}

/** @param npm the package of its provider, which is inside the program */
const opencode = (name: string, npm: string): Agent => ({
  name,
  packageName: 'opencode-linux-x64', // the registry lacks some packages of opencode-ai, so its lockfile cannot be installed
  program: (arch) => `opencode-linux-${arch}/bin/opencode`,
  args: (prompt) => ['run', prompt],
  env: ({ credential }) => ({ [KEY_VARIABLE]: credential }),
  writeFiles(home, { url, model }) {
    const options = { baseURL: `${url}/v1`, apiKey: `{env:${KEY_VARIABLE}}` }
    const provider = { headgate: { npm, options, models: { [model]: {} } } }
    const config = { model: `headgate/${model}`, small_model: `headgate/${model}`, provider }
    writeFileSync(join(home, 'work/opencode.json'), JSON.stringify(config))
  },
  shown: (stdout, stderr) => [stdout, ...linesWith(stderr, /^Error: /)].join('\n'),
})

export const AGENTS: readonly Agent[] = [
  claudeCode,
  codex,
  opencode('opencode', '@ai-sdk/openai-compatible'),
  opencode('opencode on messages', '@ai-sdk/anthropic'),
]

const linesWith = (text: string, pattern: RegExp): string[] => text.split('\n').filter((line) => pattern.test(line))
