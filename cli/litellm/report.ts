/** The report of the import to its user, beside the manifests. Pure. */
import { plain } from '#contract/values/plain-text.ts'
import type { Conversion, KeyManifest, Written } from './convert.ts'
import type { LimitSpec } from './limits.ts'
import type { Refused } from './read-keys.ts'
import { type ModelConversion, NO_MODELS } from './served-models.ts'
import { modelReport } from './models-report.ts'
import { NO_TEAMS, type TeamConversion, type WrittenTeam } from './teams.ts'

/** @param target file or stream with the manifests */
export function reportOf(
  { written, refused, unknown, notes }: Conversion,
  target: string,
  teams: TeamConversion = NO_TEAMS,
  models: ModelConversion = NO_MODELS,
): string {
  const total = written.length + refused.length
  const counts = `${total} ${total === 1 ? 'key' : 'keys'} read: ${written.length} written to ${target}, ${refused.length} not written.`
  const lines = [
    ...(total === 0 ? [] : [counts]),
    ...notes.map((note) => `! ${note}`),
    ...teamLines(teams),
    ...modelReport(models, target),
    ...written.flatMap(writtenLines),
    ...(refused.length === 0 ? [] : ['', 'Not written:']),
    ...refused.flatMap(refusedLines),
    ...(unknown.length === 0 ? [] : ['', `Fields that this version does not know and has not imported: ${unknown.join(', ')}.`]),
    ...namedModels(written, models),
    ...nextLines(written, models, target),
  ]
  return `${lines.map(plain).join('\n')}\n`
}

function writtenLines({ manifest, warnings, notes }: Written): readonly string[] {
  const { name, annotations } = manifest.metadata
  const alias = annotations?.['import.headgate.dev/key-alias']
  const hint = manifest.spec.source?.hash?.hint
  const known = [...(alias === undefined ? [] : [`alias ${JSON.stringify(alias)}`]), ...(hint === undefined ? [] : [hint])]
  return [
    '',
    `${name}${known.length === 0 ? '' : ` (${known.join(', ')})`}`,
    `  imported: ${importedParts(manifest).join(', ')}`,
    ...warnings.map((warning) => `  ! ${warning}`),
    ...notes.map((note) => `  - ${note}`),
  ]
}

function teamLines({ plans, accounts, refused }: TeamConversion): readonly string[] {
  if (accounts.length + refused.length === 0) return []
  const total = accounts.length + refused.length
  const counts = `${accounts.length} ${accounts.length === 1 ? 'Account' : 'Accounts'} and ${plans.length} ${plans.length === 1 ? 'Plan' : 'Plans'}`
  return [
    `${total} ${total === 1 ? 'team' : 'teams'} read: ${counts} written, ${refused.length} not written.`,
    ...accounts.flatMap(accountLines),
    ...(refused.length === 0 ? [] : ['', 'Teams that were not written:', ...refused.flatMap(refusedLines)]),
  ]
}

function accountLines({ account: { metadata, spec }, warnings }: WrittenTeam): readonly string[] {
  const { limits = {}, budgets = [], planRef, state } = spec
  const parts = [`Plan ${planRef.name}`, ...limitParts({ limits, budgets, state })]
  return [
    '',
    `Account ${metadata.name} (team ${JSON.stringify(metadata.annotations?.['import.headgate.dev/team-id'])})`,
    `  imported: ${parts.join(', ')}`,
    ...warnings.map((warning) => `  ! ${warning}`),
  ]
}

function limitParts({ limits = {}, budgets = [], state }: LimitSpec): readonly string[] {
  return [
    ...Object.entries(limits).map(([name, limit]) => `${name} ${limit}`),
    ...budgets.map(({ amount, window }) => `budget ${amount} (${window})`),
    ...(state === undefined ? [] : [state]),
  ]
}

function importedParts({ spec }: KeyManifest): readonly string[] {
  const { models, expirationTime, accountRef } = spec
  const count = models.includes('*') ? 'every model' : `${models.length} ${models.length === 1 ? 'model' : 'models'}`
  return [
    ...(accountRef === undefined ? [] : [`Account ${accountRef.name}`]),
    count,
    ...limitParts(spec),
    ...(expirationTime === undefined ? [] : [`expires ${expirationTime}`]),
  ]
}

function refusedLines({ place, alias, reason, remedy }: Refused): readonly string[] {
  return [`  ${place}${alias === undefined ? '' : ` (alias ${JSON.stringify(alias)})`}: ${reason}`, `    ${remedy}`]
}

/** LiteLLM's export does not tell a model from an access group, whose name would admit nothing here. Its config does. */
function namedModels(keys: readonly Written[], { written, groups }: ModelConversion): readonly string[] {
  const named = [...new Set(keys.flatMap(({ manifest }) => manifest.spec.models))].filter((name) => name !== '*').toSorted()
  if (named.length === 0) return []
  const served = new Set(written.flatMap(({ manifest: { spec } }) => [spec.servedName, ...(spec.aliases ?? [])]))
  const absent = named.filter((name) => !served.has(name) && !name.includes('*') && !groups.has(name))
  const group = 'If one of them is an access group of LiteLLM, put the models of the group in its place.'
  return [
    '',
    `The keys name these models: ${named.join(', ')}.`,
    ...named.flatMap((name) => {
      const members = groups.get(name)
      return members === undefined ? [] : [`! ${name} is an access group: put its models in its place: ${members.join(', ')}.`]
    }),
    ...(written.length === 0 ? [`! Each needs a ServedModel with that name or alias. ${group}`] : []),
    ...(written.length > 0 && absent.length > 0 ? [`! No ServedModel was written for: ${absent.join(', ')}. ${group}`] : []),
  ]
}

function nextLines(written: readonly Written[], models: ModelConversion, target: string): readonly string[] {
  const file = target === 'standard output' ? 'FILE' : target
  const kinds = [...(models.written.length > 0 ? ['ServedModels'] : []), ...(written.length > 0 ? ['ApiKeys'] : [])]
  const namespace = (written[0] ?? models.written[0])?.manifest.metadata.namespace
  if (namespace === undefined) return []
  return [
    '',
    ...budgetLines(written, models),
    `The ${kinds.join(' and ')} are in namespace ${namespace}; --namespace chooses another one.`,
    ...(written.length === 0
      ? []
      : [
          `The export has no values, so the keys have no proof: without ${namespace} in the chart value scope.unprovenHashes they wait with ProofRequired.`,
        ]),
    'Lines with ! need a decision; lines with - have no counterpart. Then:',
    `  kubectl apply -f ${file}`,
  ]
}

function budgetLines(written: readonly Written[], models: ModelConversion): readonly string[] {
  if (written.every(({ manifest }) => manifest.spec.budgets === undefined)) return []
  const free = models.written.filter(({ manifest }) => manifest.spec.pricing === undefined).map(({ manifest }) => manifest.spec.servedName)
  const names = free.length === 0 ? '' : ` Without pricing: ${free.join(', ')}.`
  return [`Budgets are in money: a model without pricing in its ServedModel refuses the requests of keys with a budget.${names}`]
}
