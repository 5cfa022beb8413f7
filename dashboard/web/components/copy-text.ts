/** Writes a text to the clipboard. @returns false where the browser refuses, or has no clipboard: pages without TLS have none */
export async function copyText(text: string): Promise<boolean> {
  if (!isSecureContext) return false
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  )
}
