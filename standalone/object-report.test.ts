import { describe, expect, test } from 'vitest'
import { apiKey, servedModel } from '../test/support/objects.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import type { Condition } from '#api/metadata.ts'
import type { KubeObject } from '#kube/port.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import { reportOf, type ObjectReport } from './object-report.ts'

/** An object with a status, for the reports. */
const withStatus = <T extends KubeObject>(object: T, status: object): KubeObject => ({ ...object, status }) as KubeObject
const condition = (type: string, status: Condition['status'], reason: string, message = `${reason}.`): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
})
const keyReport = (...conditions: Condition[]): ObjectReport => {
  const status = { observedGeneration: 2, conditions }
  return reportOf(apiKeyKind, withStatus(apiKey('bot', {}, { generation: 2 }), status))
}
const modelReport = (...conditions: Condition[]): ObjectReport => {
  const status = { observedGeneration: 2, conditions }
  return reportOf(servedModelKind, withStatus(servedModel('llama', {}, { generation: 2 }), status))
}

describe('the report of an object', () => {
  test('of a working object has no problem, and names the object as kubectl does', () => {
    const report = keyReport(condition('Ready', 'True', 'Ready'), condition('Accepted', 'True', 'Accepted'))
    expect(report).toEqual({ kind: 'ApiKey', name: 'shop/bot', isReady: true, isCurrent: true, problems: [] })
  })

  test('is not current while the status describes an older manifest, or nothing', () => {
    expect(reportOf(apiKeyKind, apiKey('bot', {}, { generation: 1 })).isCurrent).toBe(false)
    const status = { observedGeneration: 1, conditions: [condition('Ready', 'True', 'Ready')] }
    expect(reportOf(apiKeyKind, withStatus(apiKey('bot', {}, { generation: 2 }), status)).isCurrent).toBe(false)
  })

  test('names a cause once, with its own reason, although Ready and others repeat its message', () => {
    const why = '"llama" belongs to ServedModel shop/old, which is older. Choose another name.'
    const report = modelReport(
      condition('Ready', 'False', 'NotAccepted', why),
      condition('Accepted', 'False', 'NameConflict', why),
      condition('BackendsHealthy', 'False', 'NotAccepted', why),
      condition('Stalled', 'True', 'NameConflict', why),
    )
    const cause = { type: 'Accepted', status: 'False' }
    expect(report.problems).toEqual([{ headline: 'not ready', reason: 'NameConflict', condition: cause, text: why, weight: 'Warning' }])
  })

  test('names a problem of a key that nevertheless works', () => {
    const report = keyReport(
      condition('Ready', 'True', 'Ready'),
      condition('SecretIssued', 'False', 'SecretMissing', 'Create a new ApiKey.'),
    )
    expect(report.problems).toEqual([
      {
        headline: 'ready, but SecretIssued is False',
        reason: 'SecretMissing',
        condition: { type: 'SecretIssued', status: 'False' },
        text: 'Create a new ApiKey.',
        weight: 'Warning',
      },
    ])
  })

  test('distinguishes two causes, and reports an unknown state', () => {
    const report = keyReport(
      condition('Ready', 'False', 'Suspended', 'spec.state is Suspended.'),
      condition('Programmed', 'Unknown', 'StoreUnreachable', 'Redis does not answer.'),
    )
    expect(report.problems.map(({ headline, reason, weight }) => [headline, reason, weight])).toEqual([
      ['not ready', 'Suspended', 'Wanted'],
      ['Programmed is Unknown', 'StoreUnreachable', 'Warning'],
    ])
    expect(report.problems[1]?.text).toContain('Start the Redis of REDIS_URL.')
    expect(report.problems[1]?.text).toContain('the last edit is not in force')
  })

  test('of a key that was revoked before it was issued has one line and not two', () => {
    const report = keyReport(
      condition('Ready', 'False', 'Revoked', 'For ever.'),
      condition('SecretIssued', 'False', 'Revoked', 'No Secret.'),
    )
    expect(report.problems.map(({ text }) => text)).toEqual(['For ever.'])
  })

  test('omits that a model has no price: keys that need one report it', () => {
    expect(modelReport(condition('Ready', 'True', 'Ready'), condition('Priced', 'False', 'PriceMissing')).problems).toEqual([])
  })

  test('knows which problems usually pass by themselves', () => {
    const report = keyReport(
      condition('Ready', 'False', 'SecretNotIssued', 'The key is being made.'),
      condition('SecretIssued', 'False', 'Pending', 'The key is being made.'),
    )
    expect(report.problems).toMatchObject([{ reason: 'Pending', weight: 'Passing' }])
  })

  test('of a Service says that there are none without a cluster, and names the alternative', () => {
    const why =
      'backends[main].service: Service llama does not exist in this namespace. The backend is used as soon as it exists. backends[b].url is refused: no.'
    const [problem] = modelReport(condition('Accepted', 'False', 'ServiceNotFound', why)).problems
    expect(problem?.text).toBe(
      'backends[main].service: there are no Services without a cluster. Write `url: http://<host>:<port>` instead of `service`. backends[b].url is refused: no.',
    )
  })

  test.each([
    ['AddressRefused', 'Write the address of a model server.'],
    ['SecretNotFound', 'Add the Secret to the manifests, with the label headgate.dev/upstream-auth: "true".'],
    ['Unreachable', 'Start the model server, or correct the `url` of the backend.'],
  ])('adds the remedy if the message has none: %s', (reason, remedy) => {
    expect(modelReport(condition('Accepted', 'False', reason, 'It is so.')).problems[0]?.text).toBe(`It is so. ${remedy}`)
  })
})
