/** The store answers, but has nothing that may be loaded now. The caller tries again shortly. */
export class StaleProjection extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StaleProjection'
  }
}
