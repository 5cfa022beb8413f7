/** A case of an agent, and what came of it. */
import type { AgentResult } from './agent-run.ts'
import type { KeyName, WireRequest } from './agent-world.ts'
import type { Agent } from './agents.ts'
import type { ForcedTurn } from './forced-model.ts'
import type { SeenRequest } from './scripted-model.ts'

export interface AgentCase {
  readonly name: string
  readonly key: KeyName
  readonly model: string
  readonly prompt: string
  /** Prompts after the first one, for an agent that talks. */
  readonly more?: readonly string[]
  /** The agent, started in another way. */
  readonly as?: Agent
  readonly deadlineSeconds: number
  /** The names of the agents that have such a case; all without. */
  readonly only?: readonly string[]
  /** Runs without a gateway, too. */
  readonly alsoDirect?: boolean
  /** @returns what is wrong; undefined if the promise is kept */
  readonly wrong: (outcome: AgentOutcome) => string | undefined
}

export interface AgentOutcome extends AgentResult {
  /** The name of the agent. */
  readonly agent: string
  /** Requests at the gateway. */
  readonly wire: readonly WireRequest[]
  /** Requests at the scripted model server. */
  readonly seen: readonly SeenRequest[]
  /** Turns of the forced model. */
  readonly turns: readonly ForcedTurn[]
  /** Content of the file that the tool reads. */
  readonly number: number
}
