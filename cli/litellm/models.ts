/** Lists of models as LiteLLM and a manifest write them. Pure. */
import { MODEL_PATTERN } from '#contract/values/name-patterns.ts'
import type { Warn } from './limits.ts'
import { Refusal } from './read-keys.ts'

/** `SpecialModelNames` in litellm/proxy/_types.py */
export const ALL_PROXY = 'all-proxy-models'
export const ALL_TEAM = 'all-team-models'
export const NONE = 'no-default-models'
/** Bounds of `spec.models`. */
const MAX_ENTRIES = 256
const MAX_LENGTH = 8192

/** The entries that a manifest can have. @throws Refusal if there are none, or too many */
export function validModels(listed: readonly string[], warn: Warn): readonly string[] {
  const models = [...new Set(listed)].filter((name) => new RegExp(MODEL_PATTERN).test(name) && name.length <= 253)
  if (models.length === 0) throw new Refusal('no entry of models is valid in spec.models', 'create the ApiKey by hand')
  if (models.length > MAX_ENTRIES || models.join('').length > MAX_LENGTH)
    throw new Refusal(
      `models has ${models.length} entries, more than an ApiKey can have`,
      'replace names with the same beginning by one entry with * at its end, by hand',
    )
  for (const name of listed)
    if (!models.includes(name)) warn(`the model ${JSON.stringify(name.slice(0, 64))} is not valid in spec.models and is omitted`)
  return models
}
