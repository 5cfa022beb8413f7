/** The table of kinds that the operator reconciles. A new kind is one folder and one row here and in `api/kinds.ts`. */
import { accountRow } from './account/kind.ts'
import { apiKeyRow } from './apikey/kind.ts'
import { creditRow } from './credit/kind.ts'
import type { KindRow } from './kind.ts'
import { planRow } from './plan/kind.ts'
import { servedModelRow } from './served-model/kind.ts'

/** In the order in which they are started: what a key needs comes before the keys. */
export const KINDS: readonly KindRow[] = [servedModelRow, planRow, accountRow, creditRow, apiKeyRow]
