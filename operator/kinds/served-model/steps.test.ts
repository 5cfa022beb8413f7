import { describe, expect, test } from 'vitest'
import { servedModel } from '../../../test/support/objects.ts'
import { surroundings } from '../../../test/support/observed-model.ts'
import type { ServedModelStatus } from '#api/served-model.ts'
import { desiredModel } from './desired.ts'
import { nextStep, reportStatus } from './steps.ts'
import type { Confirmation } from '../../projection/acknowledgements.ts'
import type { ObservedModel, ObservedProjection } from './observed.ts'

const STATUS: ServedModelStatus = { observedGeneration: 1, servedName: 'llama' }
const CREDENTIAL = { namespace: 'shop', name: 'upstream', key: 'token' }
const REF = { namespace: 'shop', name: 'llama' }
const ACKNOWLEDGED: Confirmation = { state: 'Acknowledged', ready: 2, total: 2, missing: [] }
const WAITING: Confirmation = { state: 'Waiting', ready: 1, total: 2, missing: ['gateway-1'] }
const AROUND = surroundings({ ...servedModel('llama', {}, { uid: 'u' }), status: STATUS }, [
  { name: 'one', service: { found: true, ready: ['10.0.0.1:80'], total: 1 }, credential: { state: 'NotUsed' }, reachable: undefined },
])

/** A model without further steps. */
function settled(change: Partial<ObservedModel> = {}, projection: Partial<ObservedProjection> = {}): ObservedModel {
  return {
    ...AROUND,
    state: 'Present',
    ref: REF,
    desired: desiredModel(AROUND),
    coldStart: undefined,
    text: 'record',
    mounted: { key: '', isCurrent: true, retryInMs: Infinity, forMs: Infinity },
    unread: undefined,
    dueCredential: undefined,
    status: STATUS,
    nextChangeAtMs: undefined,
    ...change,
    projection: {
      isWanted: true,
      isKept: false,
      hadRecord: true,
      isRestricted: false,
      revision: 7,
      confirmation: ACKNOWLEDGED,
      sinceMs: 0,
      storeAvailable: true,
      ...projection,
    },
  }
}

const NEW_STATUS = { status: { ...STATUS, observedGeneration: 2 } }
const NOT_PROGRAMMED: ServedModelStatus = {
  ...STATUS,
  conditions: [{ type: 'Ready', status: 'False', reason: 'NotProgrammed', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }],
}
const NOT_ACCEPTED: ServedModelStatus = {
  ...STATUS,
  conditions: [{ type: 'Ready', status: 'False', reason: 'NotAccepted', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }],
}
const UNPROVEN = { status: NOT_PROGRAMMED, model: { ...AROUND.model, status: NOT_PROGRAMMED } }
const KEPT = { desired: { record: undefined, problems: [], keepsMounted: true } }

describe('next step of a ServedModel', () => {
  test('a model that is projected, mounted and acknowledged, with a current status, needs no step', () => {
    expect(nextStep(settled())).toBeUndefined()
  })

  test.each<[string, ObservedModel, object]>([
    [
      'a Secret that was never read is read',
      settled({ unread: CREDENTIAL }),
      { do: 'read-credential', level: 'change', credential: CREDENTIAL },
    ],
    [
      'a new record is projected after those of existing models',
      settled({}, { isWanted: false, hadRecord: false }),
      { do: 'project', level: 'create' },
    ],
    ['a changed record is projected', settled({}, { isWanted: false }), { do: 'project', level: 'change' }],
    [
      'a record that takes the model away from a namespace is urgent',
      settled({}, { isWanted: false, isRestricted: true }),
      { do: 'project', level: 'urgent' },
    ],
    [
      'a record that is no longer wanted is removed',
      settled({ text: undefined }, { isWanted: false, isRestricted: true }),
      { do: 'project', level: 'urgent' },
    ],
    [
      'changed files are mounted',
      settled({ mounted: { key: '', isCurrent: false, retryInMs: Infinity, forMs: 0 } }),
      { do: 'mount', level: 'change' },
    ],
    [
      'a status that depends on an acknowledgement waits for the event',
      settled(UNPROVEN, { confirmation: WAITING, sinceMs: 1_000 }),
      { do: 'wait' },
    ],
    [
      'an acknowledgement after an outage of Redis enqueues the object',
      settled(UNPROVEN, { confirmation: { ...WAITING, state: 'Unknown' } }),
      { do: 'wait' },
    ],
    [
      'a Secret is read again in the background',
      settled({ dueCredential: CREDENTIAL }),
      { do: 'read-credential', level: 'background', credential: CREDENTIAL },
    ],
    ['the status waits for the gateways', settled(NEW_STATUS, { confirmation: WAITING, sinceMs: 400 }), { do: 'wait', forMs: 600 }],
    [
      'the status waits for Redis',
      settled(NEW_STATUS, { revision: undefined, confirmation: undefined, sinceMs: 400 }),
      { do: 'wait', forMs: 600 },
    ],
    ['a changed status is written in the background', settled(NEW_STATUS), { do: 'write-status', level: 'background' }],
  ])('%s', (_what, observed, step) => {
    expect(nextStep(observed)).toEqual(step)
  })

  test('the steps have a fixed order: read, project, mount, read again, report', () => {
    const everything = settled(
      {
        ...NEW_STATUS,
        unread: CREDENTIAL,
        dueCredential: CREDENTIAL,
        mounted: { key: '', isCurrent: false, retryInMs: Infinity, forMs: 0 },
      },
      { isWanted: false, confirmation: WAITING },
    )
    const order: string[] = []
    let observed = everything
    for (let step = nextStep(observed); step !== undefined; step = nextStep(observed)) {
      order.push(step.do)
      observed = done(step.do, observed)
    }
    expect(order).toEqual(['read-credential', 'project', 'mount', 'read-credential', 'wait', 'write-status'])
  })

  test.each<[string, ObservedModel]>([
    ['gateways that do not answer for a second', settled(NEW_STATUS, { confirmation: WAITING, sinceMs: 1_000 })],
    ['Redis during an outage', settled(NEW_STATUS, { revision: undefined, confirmation: undefined, storeAvailable: false })],
    ['gateways that do not serve', settled(NEW_STATUS, { confirmation: { ...WAITING, state: 'NoGateways', total: 0 } })],
    ['gateways that have a refused model soon', settled({ status: NOT_ACCEPTED }, { confirmation: WAITING, sinceMs: 400 })],
    ['a model without a record', settled({ ...NEW_STATUS, text: undefined }, { revision: undefined, confirmation: undefined })],
  ])('the status does not wait for %s', (_what, observed) => {
    expect(nextStep(observed)).toEqual({ do: 'write-status', level: 'background' })
  })

  test('a model without a record that was never projected needs no step', () => {
    expect(nextStep(settled({ text: undefined }, { isWanted: false, hadRecord: false }))).toBeUndefined()
  })

  test('a record of an earlier process and its mounted entries stay while the Secret is unreadable', () => {
    const unreadable = { ...KEPT, mounted: { key: '', isCurrent: false, retryInMs: Infinity, forMs: 0 } }
    expect(nextStep(settled(unreadable, { isWanted: false, isKept: true }))).toBeUndefined()
    expect(nextStep(settled(unreadable, { isWanted: false }))).toEqual({ do: 'project', level: 'change' })
    expect(nextStep(settled(unreadable))).toBeUndefined()
  })

  test('a deleted model is forgotten before any other step, and gets no status', () => {
    const deleted = { state: 'Deleted', ref: REF, uid: 'u' } as const
    expect(nextStep(deleted)).toEqual({ do: 'forget', level: 'urgent' })
    expect(reportStatus(deleted)).toBeUndefined()
  })
})

/** The effect of `apply`. */
function done(step: string, observed: ObservedModel): ObservedModel {
  const { projection } = observed
  switch (step) {
    case 'read-credential':
      return observed.unread ? { ...observed, unread: undefined } : { ...observed, dueCredential: undefined }
    case 'project':
      return { ...observed, projection: { ...projection, isWanted: true } }
    case 'mount':
      return { ...observed, mounted: { ...observed.mounted, isCurrent: true } }
    case 'wait':
      return { ...observed, projection: { ...projection, confirmation: ACKNOWLEDGED } }
    default:
      return { ...observed, status: STATUS }
  }
}
