/** HTML without the white space of its templates, so that a test can compare it. */
export function tidyHTML(page: { toString(): string }): string {
  return page
    .toString()
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ (\/?>)/g, '$1')
    .replaceAll(/> </g, '><')
}
