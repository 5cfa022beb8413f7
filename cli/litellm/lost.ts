/** Finds fields of a LiteLLM key without a counterpart in an ApiKey, and their remedies. Pure: names of fields, never their values. */
import { type ExactJson, type LiteLLMKey, READ_FIELDS } from './read-keys.ts'

const OF_ORGANIZATION = 'limits and budgets of the organization are not imported; add them to the ApiKey or to an Account by hand'

/** Fields without a counterpart that decide what a key may do in LiteLLM: without them it may do more than before, or less. The text is the consequence or the remedy. */
const RESTRICTIONS: Readonly<Record<string, string>> = {
  permissions: 'permissions of this key are not applied',
  allowed_routes: 'the key may call every route of the gateway',
  policies: 'policies and guardrails are not applied',
  object_permission: 'permissions for MCP servers, vector stores and agents are not applied',
  object_permission_id: 'permissions for MCP servers, vector stores and agents are not applied',
  model_max_budget: 'budgets per model do not exist; a budget counts all models of the key together',
  budget_limits: 'more budget windows exist in LiteLLM; an ApiKey can have four budgets, add them by hand',
  budget_id: 'limits of a shared budget are not in the key; look them up in LiteLLM and add them by hand',
  litellm_budget_table: 'limits of a shared budget are not imported; add them by hand',
  model_rpm_limit: 'limits per model do not exist; the limits of the key count all models together',
  model_tpm_limit: 'limits per model do not exist; the limits of the key count all models together',
  guardrails: 'guardrails are not applied',
  enforced_params: 'requests without these parameters are not refused',
  temp_budget_increase: 'the budget is without the temporary increase; raise its amount by hand, and lower it again',
  soft_budget: 'add a budget with onExceeded: Audit and this amount',
  org_id: OF_ORGANIZATION,
  organization_id: OF_ORGANIZATION,
  project_id: 'limits and budgets of the project are not imported; add them to the ApiKey or to an Account by hand',
  agent_id: 'limits and budgets of the agent are not imported; add them to the ApiKey by hand',
}

/** Fields without a counterpart that change the calls of a client otherwise. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  aliases: 'models have other names for this key; put the names into spec.aliases of the ServedModel',
  config: 'settings of this key are not applied',
  router_settings: 'routing of this key is not applied; a ServedModel has backends with weights',
  allowed_cache_controls: 'the gateway has no cache of answers',
  access_group_ids: 'access groups do not exist; list the models of the groups in spec.models',
  budget_fallbacks: 'another model after a budget is used up does not exist; requests answer 402',
  auto_rotate: 'automatic rotation does not exist; change source.hash.sha256 for a new value',
  rotation_interval: 'automatic rotation does not exist; change source.hash.sha256 for a new value',
  tags: 'tags are not recorded; use labels of the ApiKey',
  logging: 'callbacks are not called; the gateway has metrics and an access log',
}

/** Fields that only describe, or that follow from others. */
const HARMLESS: ReadonlySet<string> = new Set(
  (
    'soft_budget_cooldown temp_budget_expiry model_spend budget_reset_at created_at created_by updated_at updated_by last_active rotation_count ' +
    'last_rotation_at key_rotation_at key_type id user team created_by_user user_email api_key last_refreshed_at parent_otel_span ' +
    'request_route user_role end_user_id'
  ).split(' '),
)

/** Texts of empty values: numbers are text here, and a CSV only has text. */
const EMPTY: ReadonlySet<string> = new Set(['', '{}', '[]', 'f', 'false', '0', '0.0', 'null'])

/** Fields of LiteLLM that come from the team or the user of a key. */
const OF_OTHERS = /^(team|user|org|organization|project|agent|end_user)_/

/** The report about one key, and its unknown fields. */
export interface Lost {
  /** Reasons why the key may do more than before. */
  readonly warnings: readonly string[]
  readonly notes: readonly string[]
  readonly unknown: readonly string[]
}

/** @param hasAccount whether the team of the key has an Account */
export function lostOf(key: LiteLLMKey, hasAccount: boolean): Lost {
  const own = Object.entries(key).filter(([name]) => !READ_FIELDS.has(name))
  const present = (fields: readonly (readonly [string, unknown])[]): readonly string[] =>
    fields.filter(([, value]) => hasContent(value as ExactJson)).map(([name]) => name)
  const names = [...new Set(present([...own, ...Object.entries(key.metadata)]))]
  const explained = (texts: Readonly<Record<string, string>>): readonly string[] =>
    names.filter((name) => Object.hasOwn(texts, name)).map((name) => `${name}: ${texts[name]}`)
  const known = { ...RESTRICTIONS, ...DIFFERENCES }
  const isUnknown = (name: string): boolean => !Object.hasOwn(known, name) && !HARMLESS.has(name) && !OF_OTHERS.test(name)
  return {
    warnings: [...explained(RESTRICTIONS), ...ownerWarnings(key, hasAccount)],
    notes: explained(DIFFERENCES),
    unknown: [
      ...present(own).filter(isUnknown),
      ...present(Object.entries(key.metadata))
        .filter(isUnknown)
        .map((name) => `metadata.${name}`),
    ],
  }
}

function ownerWarnings({ team_id: team, user_id: user }: LiteLLMKey, hasAccount: boolean): readonly string[] {
  const shared = 'limits and budgets that the keys of a user share are not imported; an Account can hold them'
  return [
    ...(team === undefined || hasAccount ? [] : ['team_id: limits and budgets of the team are not imported; add --teams FILE']),
    ...(user === undefined || user === 'default_user_id' ? [] : [`user_id: ${shared}`]),
  ]
}

function hasContent(value: ExactJson | undefined): boolean {
  if (value === undefined || value === null || value === false) return false
  if (typeof value !== 'object') return !EMPTY.has(String(value))
  return Object.values(value as Readonly<Record<string, ExactJson>>).some(hasContent)
}
