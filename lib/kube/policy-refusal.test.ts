import { describe, expect, test } from 'vitest'
import type { KubeError } from './port.ts'
import { policyRefusal, StatusError } from './status-error.ts'

const QUOTA = 'secrets "bot" is forbidden: exceeded quota: objects, requested: secrets=1, used: secrets=5, limited: secrets=5'
const POLICY = `secrets "bot" is forbidden: ValidatingAdmissionPolicy 'no-keys' with binding 'shop' denied request: keys need a ticket`
const WEBHOOK = 'admission webhook "policy.example.com" denied the request: keys need a ticket'

describe('policyRefusal', () => {
  test.each([
    ['a quota', 403, QUOTA, { code: 'QuotaExceeded', reason: QUOTA.slice('secrets "bot" is forbidden: '.length) }],
    ['an admission policy', 422, POLICY, { code: 'AdmissionDenied', policy: 'no-keys', reason: 'keys need a ticket' }],
    ['an admission policy that answers 403', 403, POLICY, { code: 'AdmissionDenied', policy: 'no-keys', reason: 'keys need a ticket' }],
    ['a webhook', 400, WEBHOOK, { code: 'AdmissionDenied', policy: 'policy.example.com', reason: 'keys need a ticket' }],
    [
      'a webhook without words',
      403,
      'admission webhook "a.b" denied the request without explanation',
      { code: 'AdmissionDenied', policy: 'a.b', reason: 'without explanation' },
    ],
  ])('%s is recognized, with its own words', (_what, status, message, expected) => {
    expect(policyRefusal(status, message)).toEqual(expected)
  })

  test.each([
    ['a missing right', 403, 'secrets is forbidden: User "x" cannot create resource "secrets"'],
    ['an object that quotes a policy in a field', 422, `Secret "a" is invalid: data: Invalid value: ${JSON.stringify(WEBHOOK)}`],
    ['a failure of the server', 500, WEBHOOK],
  ])('%s is not a refusal by policy', (_what, status, message) => {
    expect(policyRefusal(status, message)).toBeUndefined()
  })
})

describe('the error of a refused call', () => {
  function refusal(status: number, message: string): KubeError {
    const text = JSON.stringify({ kind: 'Status', reason: 'Forbidden', message })
    return new StatusError({ verb: 'create', resource: 'secrets', object: 'shop/bot', namespace: 'shop' }, { status, text })
  }

  test('says that a new kind is not known yet, instead of asking for a right', () => {
    const why = 'cannot find RESTMapping for APIVersion headgate.dev/v1alpha1 Kind ApiKey: no matches for kind "ApiKey"'
    const error = refusal(403, `secrets "bot" is forbidden: cannot set blockOwnerDeletion in this case because ${why}`)
    expect([error.code, error.message]).toEqual([
      'Unreachable',
      'create secrets shop/bot: the API server does not know the kind of the owner yet, since its CustomResourceDefinition is new',
    ])
  })

  test('names a webhook that does not answer, and stays a failure that a later try may solve', () => {
    const why = 'failed to call webhook: Post "https://policy.security.svc:443/?timeout=10s": context deadline exceeded'
    const error = refusal(500, `Internal error occurred: failed calling webhook "policy.example.com": ${why}`)
    expect([error.code, error.message]).toEqual([
      'Unreachable',
      `create secrets shop/bot: 500 Forbidden: admission webhook policy.example.com cannot be called (${why})`,
    ])
    expect(refusal(422, `Secret "a" is invalid: failed calling webhook "a": x`).message).not.toContain('cannot be called')
  })

  test('carries policy, words and namespace, for Secrets too', () => {
    expect(refusal(422, POLICY)).toMatchObject({
      code: 'AdmissionDenied',
      policy: 'no-keys',
      reason: 'keys need a ticket',
      namespace: 'shop',
    })
    expect(refusal(403, QUOTA).message).toContain('exceeded quota: objects')
    expect(refusal(403, QUOTA).message).not.toContain('grant')
  })

  test('never shows a Credential or a long run of base64, whatever the policy quotes', () => {
    const credential = 'sk-hg1-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789'
    const encoded = Buffer.from(credential).toString('base64')
    const error = refusal(422, `${POLICY} but data is ${credential} (${encoded})`)
    expect(`${error.message} ${error.reason}`).not.toContain('AbCdEf')
    expect(`${error.message} ${error.reason}`).not.toContain(encoded.slice(0, 40))
    expect(error.reason).toContain('keys need a ticket but data is sk-…')
  })

  test('shows at most 300 characters of a policy', () => {
    expect(refusal(422, `${POLICY} ${'very '.repeat(500)}`).reason?.length).toBeLessThanOrEqual(300)
  })
})
