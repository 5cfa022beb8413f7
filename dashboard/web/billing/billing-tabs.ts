/** The tabs of Billing. */
export const BILLING_TABS = [
  { name: 'Balance', path: '/billing' },
  { name: 'Plan', path: '/billing/plan' },
]
