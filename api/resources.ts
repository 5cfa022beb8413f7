/** Where the API serves Headgate's own kinds. */
import type { Resource } from '#kube/port.ts'
import type { ApiKey } from './apikey.ts'
import { API_GROUP, API_VERSION } from './metadata.ts'
import type { ServedModel } from './served-model.ts'

export const apiKeys: Resource<ApiKey> = { group: API_GROUP, version: API_VERSION, plural: 'apikeys', kind: 'ApiKey', namespaced: true }
export const servedModels: Resource<ServedModel> = {
  group: API_GROUP,
  version: API_VERSION,
  plural: 'servedmodels',
  kind: 'ServedModel',
  namespaced: true,
}
