/** The finalizer as users see it. The tests do not use the product's constant. */
export const FINALIZER = 'headgate.dev/revoke'
