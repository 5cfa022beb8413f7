/** The table of kinds that the operator reconciles. A new kind is one folder and one row here and in `api/kinds.ts`. */
import { apiKeyRow } from './apikey/kind.ts'
import type { KindRow } from './kind.ts'
import { servedModelRow } from './served-model/kind.ts'

/** In the order in which they are started: models first, so that a key that becomes Ready finds its models. */
export const KINDS: readonly KindRow[] = [servedModelRow, apiKeyRow]
