/** Converts the teams of LiteLLM to Accounts, and their lists of models to Plans. Pure. */
import { z } from 'zod'
import { plain } from '#contract/values/plain-text.ts'
import type { accountSpec } from '#api/account.ts'
import type { planSpec } from '#api/plan.ts'
import { validateManifest } from '#api/validate.ts'
import type { KubeObject } from '#kube/port.ts'
import { limitsOf, type Warn } from './limits.ts'
import { dnsName, suffixOf, uniqueNames } from './names.ts'
import { ALL_PROXY, validModels } from './models.ts'
import { limitFields, optionalText, readRows, Refusal, type Refused, textList, UnreadableFile } from './read-keys.ts'

/** One team: `LiteLLM_TeamTable` in LiteLLM's `schema.prisma`, and the answer of GET /team/list. */
const team = z.looseObject({
  ...limitFields,
  team_id: z.string({ error: 'is missing' }).min(1),
  team_alias: optionalText,
  models: textList,
})
export type LiteLLMTeam = z.infer<typeof team>

export interface PlanManifest extends KubeObject {
  readonly spec: z.input<typeof planSpec>
}
export interface AccountManifest extends KubeObject {
  readonly spec: z.input<typeof accountSpec>
}

/** One team with a manifest. */
export interface WrittenTeam {
  readonly teamID: string
  readonly account: AccountManifest
  readonly warnings: readonly string[]
}

export interface TeamConversion {
  /** One for each list of models. */
  readonly plans: readonly PlanManifest[]
  readonly accounts: readonly WrittenTeam[]
  readonly refused: readonly Refused[]
}

export interface TeamOptions {
  /** Namespace of the keys. */
  readonly namespace: string
  readonly subtractSpend: boolean
}

export const NO_TEAMS: TeamConversion = { plans: [], accounts: [], refused: [] }

const BY_HAND = 'correct the file, or create the Account by hand'
const MAX_DISPLAY_NAME = 63
/** Keys of a team have no bound in LiteLLM. */
const MAX_KEYS = 100_000

/** @throws UnreadableFile */
export function readTeams(text: string): readonly LiteLLMTeam[] {
  return readRows(text, 'teams', 'ask LiteLLM for GET /team/list').map((row, index) => {
    const parsed = team.safeParse(row)
    if (parsed.success) return parsed.data
    const fields = [...new Set(parsed.error.issues.map(({ path }) => path.join('.') || 'the entry'))].join(', ')
    throw new UnreadableFile(
      `entry ${index + 1} of the teams: ${fields}: not of the form that LiteLLM writes; ask for GET /team/list again`,
    )
  })
}

export function convertTeams(teams: readonly LiteLLMTeam[], options: TeamOptions): TeamConversion {
  const names = uniqueNames(
    teams.map(({ team_id: id, team_alias: alias }) => ({ name: dnsName(alias ?? id) ?? `team-${suffixOf(id)}`, suffix: suffixOf(id) })),
  )
  const plans = new Map<string, PlanManifest>()
  const accounts: WrittenTeam[] = []
  const refused: Refused[] = []
  for (const [index, one] of teams.entries()) {
    try {
      const warnings: string[] = []
      const plan = planOf(one, (text) => warnings.push(text))
      const account = accountOf(one, { ...options, name: names[index] ?? '', plan: plan.metadata.name }, (text) => warnings.push(text))
      for (const manifest of [plan, account]) assertValid(manifest)
      plans.set(plan.metadata.name, plan)
      accounts.push({ teamID: one.team_id, account, warnings })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      refused.push({ place: `team ${one.team_id.slice(0, 64)}`, alias: one.team_alias, reason: error.message, remedy: error.remedy })
    }
  }
  return { plans: [...plans.values()], accounts, refused }
}

/** In LiteLLM, a team without models may call every model. */
function planOf({ models: listed }: LiteLLMTeam, warn: Warn): PlanManifest {
  const hasAll = listed.length === 0 || listed.includes(ALL_PROXY)
  if (hasAll) warn('EVERY MODEL: the team may call every model in LiteLLM, so its Plan has models: ["*"]; list them if it should not')
  const models = hasAll ? ['*'] : validModels(listed, warn)
  const name = hasAll ? 'litellm-all-models' : `litellm-${suffixOf(models.toSorted((a, b) => (a < b ? -1 : 1)).join('\n'))}`
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'Plan',
    metadata: { name, labels: FROM },
    spec: { models: [...models], maxKeys: MAX_KEYS },
  }
}

const FROM = { 'import.headgate.dev/from': 'litellm' }

interface AccountPlace extends TeamOptions {
  readonly name: string
  readonly plan: string
}

function accountOf(one: LiteLLMTeam, { name, plan, namespace, subtractSpend }: AccountPlace, warn: Warn): AccountManifest {
  const { state, limits, budgets } = limitsOf(one, subtractSpend, warn)
  const displayName = one.team_alias === undefined ? undefined : Array.from(plain(one.team_alias)).slice(0, MAX_DISPLAY_NAME).join('')
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'Account',
    metadata: { name, labels: FROM, annotations: { 'import.headgate.dev/team-id': plain(one.team_id).slice(0, 1024) } },
    spec: {
      displayName,
      planRef: { name: plan },
      state: state === 'Suspended' ? 'Suspended' : undefined,
      namespaces: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
      limits,
      budgets,
    },
  }
}

function assertValid(manifest: KubeObject): void {
  const validated = validateManifest(manifest)
  if (!validated.ok) throw new Refusal(validated.errors.map(({ field, reason }) => `${field}: ${reason}`).join('; '), BY_HAND)
}
