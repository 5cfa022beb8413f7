/** From what a person asks for to the ApiKey, and back to the fields of a form. Pure. */
import { createHash } from 'node:crypto'
import type { ApiKey, ApiKeySpec } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { validateManifest } from '#api/validate.ts'
import { apiVersionOf } from '#kube/port.ts'
import { CREATED_BY_DASHBOARD, CREATED_BY_LABEL } from '#api/metadata.ts'
import type { KeyForm } from '../page-data/keys.ts'
import { refusedFields } from './key-form.ts'
import type { DrawnValue } from './key-value.ts'

/** Name of the one budget that the form sets. Its spend belongs to the name, so the name never changes. */
export const OWN_BUDGET = 'own'
const NAME_DIGITS = 20

/** The name of the ApiKey that an attempt makes: the same at every retry, and nobody can choose one of another account. */
export function keyNameOf(account: string, attempt: string): string {
  return `k-${createHash('sha256').update(`${account}\n${attempt}`).digest('hex').slice(0, NAME_DIGITS)}`
}

export interface NewKeyFacts {
  readonly name: string
  readonly namespace: string
  readonly account: string
  readonly hash: DrawnValue['hash']
}

/** @throws Refused for what the API server would refuse */
export function newApiKey(form: KeyForm, { name, namespace, account, hash }: NewKeyFacts): ApiKey {
  const spec = { ...specOf(form), state: 'Active', accountRef: { name: account }, source: { type: 'Hash', hash } }
  return checked({
    apiVersion: apiVersionOf(apiKeys),
    kind: apiKeys.kind,
    metadata: { name, namespace, labels: { [CREATED_BY_LABEL]: CREATED_BY_DASHBOARD } },
    spec,
  })
}

/** The spec after an edit. Fields that the form does not have stay. @throws Refused */
export function editedSpec(form: KeyForm, present: ApiKey): ApiKeySpec {
  const { displayName: _, models: __, limits, budgets, expirationTime: ___, ttlSeconds: ____, ...rest } = present.spec
  const { maxConcurrentRequests } = limits ?? {}
  const asked = specOf(form)
  const kept = (budgets ?? []).filter(({ name }) => name !== OWN_BUDGET)
  const spec = {
    ...rest,
    ...asked,
    ...optional('limits', { ...asked.limits, ...optional('maxConcurrentRequests', maxConcurrentRequests) }),
    ...optional('budgets', [...(asked.budgets ?? []), ...kept]),
  }
  const { name, namespace } = present.metadata
  return checked({ apiVersion: present.apiVersion, kind: present.kind, metadata: { name, namespace }, spec }, present).spec
}

type Asked = Pick<ApiKeySpec, 'displayName' | 'models' | 'limits' | 'budgets' | 'expirationTime'>

function specOf({ name, models, budget, requestsPerMinute, tokensPerMinute, expiresAt }: KeyForm): Asked {
  const limits = { ...optional('requestsPerMinute', requestsPerMinute), ...optional('tokensPerMinute', tokensPerMinute) }
  return {
    displayName: name,
    models: [...models],
    ...optional('limits', limits),
    ...(budget && { budgets: [{ name: OWN_BUDGET, unit: 'Currency', onExceeded: 'Block', ...budget }] }),
    ...optional('expirationTime', expiresAt),
  }
}

/** @returns a field, or nothing for an absent and for an empty value */
function optional<Name extends string, T>(name: Name, value: T | undefined): { readonly [K in Name]?: T } {
  const isEmpty = value === undefined || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
  return isEmpty ? {} : ({ [name]: value } as { readonly [K in Name]: T })
}

/** Fields of the form by the path in the manifest. */
const FORM_FIELDS: ReadonlyArray<readonly [path: RegExp, field: string]> = [
  [/^spec\.displayName/, 'name'],
  [/^spec\.models/, 'models'],
  [/^spec\.budgets/, 'budget'],
  [/^spec\.limits\.requestsPerMinute/, 'requestsPerMinute'],
  [/^spec\.limits\.tokensPerMinute/, 'tokensPerMinute'],
  [/^spec\.(expirationTime|ttlSeconds)/, 'expiresAt'],
]

/** Nothing is written that the API server would refuse. */
function checked(manifest: unknown, present?: ApiKey): ApiKey {
  const validated = validateManifest(manifest, present)
  if (validated.ok) return validated.object as ApiKey
  throw refusedFields(
    Object.fromEntries(
      validated.errors.map(({ field, reason, remedy }) => {
        const [, name = 'form'] = FORM_FIELDS.find(([path]) => path.test(field)) ?? []
        return [name, `${reason}; ${remedy}.`]
      }),
    ),
  )
}
