/** Saves what was read from the server as a file. A link of its own would save a refusal as the file. */
export function saveAs(name: string, content: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000) // the browser reads the content after the click
}
