/** Parses numbers that people type. Pure. */

/** Without the commas between thousands: `200,000` and `1,250.00`. Anything else stays as it is, without spaces around. */
export function plainNumber(text: string): string {
  const trimmed = text.trim()
  return /^\d{1,3}(,\d{3})+(\.\d+)?$/.test(trimmed) ? trimmed.replaceAll(',', '') : trimmed
}
