/** One problem of a manifest: where, why, and what to do. Safe to show: it repeats only text of the manifest. */
export interface ManifestError {
  /** Path from the root, as kubectl shows it: `spec.backends[0].url`. */
  readonly field: string
  readonly reason: string
  readonly remedy: string
}
