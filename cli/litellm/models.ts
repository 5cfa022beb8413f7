/** Converts the models of a LiteLLM key to `spec.models`. Pure. */
import { MODEL_PATTERN } from '#contract/values/name-patterns.ts'

/** Models of the teams by team id, from the options of the user. */
export type TeamModels = ReadonlyMap<string, readonly string[]>

/** `SpecialModelNames` in litellm/proxy/_types.py */
const ALL_PROXY = 'all-proxy-models'
const ALL_TEAM = 'all-team-models'
const NONE = 'no-default-models'
/** Bounds of `spec.models`. */
const MAX_ENTRIES = 256
const MAX_LENGTH = 8192

/** The allow-list of a key, or the reason why there is none. */
export type ModelChoice =
  | { readonly ok: true; readonly models: readonly string[]; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly reason: string; readonly remedy: string }

/** The models that LiteLLM admits for this key. There, an empty list means all models. No list may admit more than before. */
export function modelsOf(listed: readonly string[], teamID: string | undefined, teams: TeamModels): ModelChoice {
  const isOfTeam = listed.includes(ALL_TEAM) || (listed.length === 0 && teamID !== undefined)
  if (listed.includes(NONE))
    return refused(`models has ${NONE}, so the key may call nothing`, 'delete the key, or list its models in LiteLLM and export again')
  if (isOfTeam) return teamChoice(teamID, teams)
  if (listed.length === 0 || listed.includes(ALL_PROXY)) {
    const cause = listed.length === 0 ? 'models is empty in LiteLLM' : `models has ${ALL_PROXY}`
    return {
      ok: true,
      models: ['*'],
      warnings: [`EVERY MODEL: ${cause}, so the key gets models: ["*"]; list its models if it should not call all of them`],
    }
  }
  return listChoice(listed)
}

function teamChoice(teamID: string | undefined, teams: TeamModels): ModelChoice {
  const models = teamID === undefined ? undefined : teams.get(teamID)
  if (models !== undefined) return listChoice(models)
  const team = teamID ?? 'TEAM'
  return refused(
    'the key may call the models of its team, and the file does not list them',
    `add --team-models '${team}=model-a,model-b' ('${team}=*' for every model)`,
  )
}

function listChoice(listed: readonly string[]): ModelChoice {
  const models = [...new Set(listed)].filter((name) => new RegExp(MODEL_PATTERN).test(name) && name.length <= 253)
  const dropped = listed.filter((name) => !models.includes(name))
  if (models.length === 0) return refused('no entry of models is valid in spec.models', 'create the ApiKey by hand')
  if (models.length > MAX_ENTRIES || models.join('').length > MAX_LENGTH)
    return refused(
      `models has ${models.length} entries, more than an ApiKey can have`,
      'replace names with the same beginning by one entry with * at its end, by hand',
    )
  return {
    ok: true,
    models,
    warnings: dropped.map((name) => `the model ${JSON.stringify(name.slice(0, 64))} is not valid in spec.models and is omitted`),
  }
}

function refused(reason: string, remedy: string): ModelChoice {
  return { ok: false, reason, remedy }
}
