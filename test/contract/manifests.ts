/**
 * Good and bad manifests in one table. `crd-zod.test.ts` runs it on the zod twins, `test/integration/crd-server.test.ts` on a real API
 * server: both must accept the same manifests, fill in the same defaults, and blame the same fields.
 */

import { ACCOUNT_MANIFESTS } from './account-manifests.ts'
import { API_KEY_MANIFESTS } from './api-key-manifests.ts'
import { CREDIT_MANIFESTS } from './credit-manifests.ts'
import type { ManifestRow } from './manifest-row.ts'
import { SERVED_MODEL_MANIFESTS } from './served-model-manifests.ts'

export const MANIFESTS: readonly ManifestRow[] = [
  ...API_KEY_MANIFESTS,
  ...SERVED_MODEL_MANIFESTS,
  ...ACCOUNT_MANIFESTS,
  ...CREDIT_MANIFESTS,
]
