/** One error in a manifest: field, reason and remedy. It repeats only text of the manifest, so it is safe to show. */
export interface ManifestError {
  /** Path from the root, as kubectl shows it: `spec.backends[0].url`. */
  readonly field: string
  readonly reason: string
  readonly remedy: string
}
