/** The pages that are not part of the first load, in one file: few requests, and one fetch has them all. */
export { BillingPage } from './billing/billing.tsx'
export { PlanPage } from './billing/plan.tsx'
export { KeyPage } from './keys/key-page.tsx'
export { KeysPage } from './keys/keys-page.tsx'
export { Settings } from './settings/settings.tsx'
export { UsagePage } from './usage/usage.tsx'
