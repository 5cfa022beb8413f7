/** Text of others on a terminal. */

const STEERING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu
const STEERING_BUT_LINES = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** One line without characters that steer a terminal or the direction of writing: a user, a file or a server wrote the text. */
export function plain(text: string): string {
  return text.replaceAll(STEERING, '?')
}

/** The same for a text of several lines. */
export function plainLines(text: string): string {
  return text.replaceAll(STEERING_BUT_LINES, '?')
}
