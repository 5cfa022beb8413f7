/** The hash of a LiteLLM key, and the check for texts that must not be shown because they are its value. Pure. */
import { createHash } from 'node:crypto'

const HEX = /^[0-9a-f]{64}$/

/** The SHA-256 that LiteLLM stores. */
export type ValueHash =
  | { readonly ok: true; readonly sha256: string; readonly hint: string | undefined; readonly wasPlain: boolean }
  | { readonly ok: false; readonly reason: string; readonly remedy: string }

/**
 * @param token of LiteLLM: the hash, or in a file written by hand the value itself, which is hashed as LiteLLM does
 * @param keyName such as `sk-...AbCd`
 */
export function valueHash(token: string, keyName: string | undefined): ValueHash {
  const text = token.trim()
  if (HEX.test(text.toLowerCase())) return { ok: true, sha256: text.toLowerCase(), hint: hintIn(keyName), wasPlain: false }
  if (/^sk-[!-~]+$/.test(text))
    return { ok: true, sha256: sha256(text), hint: text.length < 20 ? undefined : `sk-...${text.slice(-4)}`, wasPlain: true }
  return {
    ok: false,
    reason: 'token is not a SHA-256 of 64 hexadecimal digits',
    remedy: 'export the keys from LiteLLM again; it stores the SHA-256 of each value',
  }
}

/** Whether a text that people chose, such as an alias, is the value itself. */
export function isValue(text: string, hash: string): boolean {
  return sha256(text) === hash
}

/** Accepts only the form of `abbreviate_api_key` in LiteLLM: any other text might be a value. */
function hintIn(keyName: string | undefined): string | undefined {
  return keyName !== undefined && /^sk-\.\.\.[!-~]{1,4}$/.test(keyName) ? keyName : undefined
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
