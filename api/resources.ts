/** Where the API serves Headgate's own kinds. */
import type { Resource } from '#kube/port.ts'
import type { Account } from './account.ts'
import type { ApiKey } from './apikey.ts'
import type { Credit } from './credit.ts'
import { API_GROUP, API_VERSION } from './metadata.ts'
import type { Plan } from './plan.ts'
import type { ServedModel } from './served-model.ts'

export const apiKeys: Resource<ApiKey> = { group: API_GROUP, version: API_VERSION, plural: 'apikeys', kind: 'ApiKey', namespaced: true }
export const accounts: Resource<Account> = {
  group: API_GROUP,
  version: API_VERSION,
  plural: 'accounts',
  kind: 'Account',
  namespaced: false,
}
export const credits: Resource<Credit> = { group: API_GROUP, version: API_VERSION, plural: 'credits', kind: 'Credit', namespaced: false }
export const plans: Resource<Plan> = { group: API_GROUP, version: API_VERSION, plural: 'plans', kind: 'Plan', namespaced: false }
export const servedModels: Resource<ServedModel> = {
  group: API_GROUP,
  version: API_VERSION,
  plural: 'servedmodels',
  kind: 'ServedModel',
  namespaced: true,
}
