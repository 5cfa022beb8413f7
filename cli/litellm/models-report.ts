/** The part of the report about models and the Secrets that they need. Pure. */
import type { CredentialNeed } from './backend-credential.ts'
import type { Refused } from './read-keys.ts'
import type { ModelConversion, ModelManifest, WrittenModel } from './served-models.ts'

export function modelReport({ written, refused, credentials, notes }: ModelConversion, target: string): readonly string[] {
  if (written.length + refused.length === 0) return []
  const models = `${written.length} ${written.length === 1 ? 'ServedModel' : 'ServedModels'} written to ${target}`
  return [
    `${models}, ${refused.length} ${refused.length === 1 ? 'entry' : 'entries'} of LiteLLM not.`,
    ...notes,
    ...written.flatMap(writtenLines),
    ...(refused.length === 0 ? [] : ['', 'Models that were not written:', ...refused.flatMap(refusedLines)]),
    ...credentialLines(credentials, written[0]?.manifest.metadata.namespace ?? ''),
  ]
}

function refusedLines({ place, alias, reason, remedy }: Refused): readonly string[] {
  return [`  ${alias === undefined ? place : `${place} (${JSON.stringify(alias)})`}: ${reason}`, `    ${remedy}`]
}

function writtenLines({ manifest, warnings, notes }: WrittenModel): readonly string[] {
  const { metadata, spec } = manifest
  return [
    '',
    `ServedModel ${metadata.name} (${JSON.stringify(spec.servedName)})`,
    `  imported: ${importedParts(spec).join(', ')}`,
    ...warnings.map((warning) => `  ! ${warning}`),
    ...notes.map((note) => `  - ${note}`),
  ]
}

function importedParts({ backends, aliases, pricing }: ModelManifest['spec']): readonly string[] {
  return [
    ...backends.map(({ url, service }) => url ?? `Service ${service?.name ?? ''}:${service?.port ?? ''}`),
    ...(aliases ?? []).map((alias) => `alias ${alias}`),
    ...(pricing === undefined ? [] : [`price ${pricing.inputPerMillion}/${pricing.outputPerMillion} per million tokens`]),
  ]
}

/** Commands for a shell that has the variables of LiteLLM. */
function credentialLines(needs: readonly CredentialNeed[], namespace: string): readonly string[] {
  const secrets = [...Map.groupBy(needs, ({ secret }) => secret)]
  if (secrets.length === 0) return []
  return [
    '',
    'The ServedModels name these Secrets. Where the variables of LiteLLM are set, make them with:',
    ...secrets.flatMap(([secret, found]) => {
      const variable = found[0]?.variable ?? 'CREDENTIAL'
      const hosts = [...new Set(found.flatMap(({ host }) => host ?? []))]
      const on = `kubectl -n ${namespace}`
      return [
        `  printf %s "$${variable}" | ${on} create secret generic ${secret} --from-file=token=/dev/stdin`,
        `  ${on} label secret ${secret} headgate.dev/upstream-auth=true`,
        ...(hosts.length === 0 ? [] : [`  ${on} annotate secret ${secret} headgate.dev/upstream-hosts='${hosts.join(', ')}'`]),
      ]
    }),
  ]
}
