/** The finalizer as users see it; the tests do not believe the constant of the product. */
export const FINALIZER = 'headgate.dev/revoke'
