/** The exchange of a code for a token: who asks, and whether the code was issued to exactly this exchange. */
import { createHash } from 'node:crypto'
import type { Grant, StubClient } from './authorize.ts'
import type { Asked } from './exchange.ts'
import type { Issued } from './issued.ts'

const VERIFIER = /^[\w.~-]{43,128}$/

/** Whether a token request has the id and the secret of the client: in its form (client_secret_post) or by Basic (client_secret_basic). */
export function isClient(client: StubClient, { form, headers }: Asked): boolean {
  const basic = basicOf(headers.authorization)
  if (basic === undefined) return form.get('client_id') === client.id && form.get('client_secret') === client.secret
  if (form.has('client_secret')) return false // RFC 6749, 2.3: one method in each request
  return basic.id === client.id && basic.secret === client.secret && (form.get('client_id') ?? client.id) === client.id
}

function basicOf(authorization = ''): { readonly id: string; readonly secret: string } | undefined {
  const encoded = /^basic +(\S+)$/i.exec(authorization)?.[1]
  if (encoded === undefined) return undefined
  const [id = '', ...secret] = Buffer.from(encoded, 'base64').toString('utf8').split(':')
  return { id: formDecoded(id), secret: formDecoded(secret.join(':')) }
}

/** RFC 6749, 2.3.1: both parts are encoded as in a form. */
function formDecoded(text: string): string {
  return new URLSearchParams(`value=${text}`).get('value') ?? ''
}

/** Why a code gives no token. */
export type CodeRefusal = 'unknown-code' | 'redirect-mismatch' | 'wrong-verifier'

/** Takes the code of a token request of the client. The code ends here, also when the answer is a refusal. */
export function takeGrant(codes: Issued<Grant>, form: URLSearchParams): Grant | CodeRefusal {
  const grant = codes.take(form.get('code') ?? '')
  if (grant === undefined) return 'unknown-code'
  if (form.get('redirect_uri') !== grant.redirectURI) return 'redirect-mismatch'
  const verifier = form.get('code_verifier') ?? ''
  const isProven = VERIFIER.test(verifier) && createHash('sha256').update(verifier).digest('base64url') === grant.challenge
  return isProven ? grant : 'wrong-verifier'
}
