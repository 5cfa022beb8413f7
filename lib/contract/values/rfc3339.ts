/** @returns the time as Kubernetes writes it: RFC 3339 in whole seconds, rounded down @param ms since 1970 */
export function rfc3339(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
