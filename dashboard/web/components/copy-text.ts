/** Writes a text to the clipboard. @returns false where the browser refuses, or has no clipboard: pages without TLS have none */
export async function copyText(text: string): Promise<boolean> {
  const { clipboard } = navigator as { readonly clipboard?: Clipboard }
  if (!isSecureContext || clipboard === undefined) return false
  return clipboard.writeText(text).then(
    () => true,
    () => false,
  )
}
