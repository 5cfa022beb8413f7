import { accountKind } from './account-kind.ts'
import { apiKeyKind } from './apikey-kind.ts'
import { creditKind } from './credit-kind.ts'
import type { ApiKind } from './kind.ts'
import { planKind } from './plan-kind.ts'
import { servedModelKind } from './served-model-kind.ts'

/** Every kind of the API, in the order of the reference page. To add a kind, add a row. */
export const API_KINDS: readonly ApiKind[] = [apiKeyKind, servedModelKind, planKind, accountKind, creditKind]
