import { describe, expect, test } from 'vitest'
import { credentialForm, hashCredential, mintCredential } from '#contract/values/credential.ts'
import { heldKey } from '../../../test/support/observed-key.ts'
import type { Secret } from '#kube/resources.ts'
import { observeSecret, refreshedSecret, secretName, trialSecret, userSecret } from './user-secret.ts'

const URL = 'https://models.example'
const { credential, id } = mintCredential()
const written = (key = heldKey(), publicURL = URL): Secret => userSecret(key, credential, publicURL, { id, number: 3 })
const plain = ({ data = {} }: Pick<Secret, 'data'>): Record<string, string> =>
  Object.fromEntries(Object.entries(data).map(([name, text]) => [name, Buffer.from(text, 'base64').toString()]))
const withValue = (value: string, secret = written()): Secret => ({
  ...secret,
  data: { ...secret.data, SERVICE_API_KEY: Buffer.from(value).toString('base64') },
})

describe('the Secret of a user', () => {
  test('holds the variables that each SDK reads from the environment, with the path that each SDK needs', () => {
    expect(plain(written())).toEqual({
      SERVICE_API_KEY: credential,
      SERVICE_BASE_URL: 'https://models.example/v1',
      OPENAI_API_KEY: credential,
      OPENAI_BASE_URL: 'https://models.example/v1',
      ANTHROPIC_AUTH_TOKEN: credential,
      ANTHROPIC_BASE_URL: 'https://models.example',
    })
  })

  test('has the name, labels and annotations of the manifest, and is owned by its ApiKey', () => {
    const template = { labels: { team: 'ml' }, annotations: { note: 'x' } }
    const secret = written(heldKey({ secret: { name: 'other', retention: 'Keep', template } }))
    expect(secretName(heldKey())).toBe('bot')
    expect(secret.metadata).toMatchObject({
      name: 'other',
      namespace: 'shop',
      labels: { team: 'ml', 'app.kubernetes.io/managed-by': 'headgate-operator' },
      annotations: { note: 'x', 'headgate.dev/key-id': id, 'headgate.dev/generation': '3' },
      ownerReferences: [{ kind: 'ApiKey', name: 'bot', uid: 'uid-1', controller: true, blockOwnerDeletion: true }],
    })
  })
})

describe('the Secret of a trial write', () => {
  const template = { labels: { team: 'ml' }, annotations: { note: 'x' } }
  const key = heldKey({ secret: { name: 'other', retention: 'Keep', template } })

  test('is checked by the same quota and policies as the real Secret: only value, id and generation differ', () => {
    const [trial, real] = [trialSecret(key, URL), written(key)]
    expect(Object.keys(trial.data ?? {})).toEqual(Object.keys(real.data ?? {}))
    expect(trial).toMatchObject({ type: real.type, metadata: { name: 'other', labels: real.metadata.labels } })
    expect(trial.metadata.ownerReferences).toEqual(real.metadata.ownerReferences)
    expect(Object.keys(trial.metadata.annotations ?? {})).toEqual(Object.keys(real.metadata.annotations ?? {}))
  })

  test('holds no Credential', () => {
    for (const value of Object.values(plain(trialSecret(key, URL)))) expect(credentialForm(value).form).toBe('malformed')
  })
})

describe('observeSecret', () => {
  test('identifies a minted value by hash and id, and shows only the prefix of the value', () => {
    const seen = observeSecret(heldKey(), written(), URL)
    expect(seen).toMatchObject({ state: 'Ours', hash: hashCredential(credential), keyID: id, valueID: id, generation: 3, current: true })
    expect(JSON.stringify(seen)).not.toContain(credential)
  })

  test('distinguishes an absent Secret from a Secret of another owner or without an owner', () => {
    expect(observeSecret(heldKey(), undefined, URL)).toEqual({ state: 'Absent' })
    const other = (written().metadata.ownerReferences ?? []).map((owner) => ({ ...owner, uid: 'uid-2', name: 'another' }))
    const taken = { ...written(), metadata: { ...written().metadata, ownerReferences: other } }
    expect(observeSecret(heldKey(), taken, URL)).toEqual({ state: 'Foreign', apiKey: 'another' })
    const { ownerReferences, ...metadata } = written().metadata
    expect(observeSecret(heldKey(), { ...written(), metadata }, URL)).toEqual({ state: 'Foreign' })
    const shared = (ownerReferences ?? []).map((owner) => ({ ...owner, controller: false }))
    expect(observeSecret(heldKey(), { ...written(), metadata: { ...metadata, ownerReferences: shared } }, URL)).toEqual({
      state: 'Foreign',
    })
  })

  const miscopied = credential.slice(0, -1) + (credential.endsWith('0') ? '1' : '0')
  test.each(['', 'mine', miscopied, 'sk-abcdefghijklmnopqrstuvwx'])(
    'a value that the operator did not mint (%#) has no hash, and is not repaired',
    (value) => {
      const form = credentialForm(value).form
      expect(form).not.toBe('own')
      expect(observeSecret(heldKey(), withValue(value), URL)).toMatchObject({
        state: 'Ours',
        hash: undefined,
        valueID: '',
        prefix: '',
        current: true,
      })
    },
  )

  test('a Secret of a deleted ApiKey with the same name is left over, for garbage collection', () => {
    expect(observeSecret(heldKey({}, { uid: 'uid-2' }), written(), URL)).toEqual({ state: 'LeftOver' })
    const [owner] = written().metadata.ownerReferences ?? []
    const owned = (change: object): Secret => ({
      ...written(),
      metadata: { ...written().metadata, ownerReferences: [{ ...owner, uid: 'uid-0', ...change } as NonNullable<typeof owner>] },
    })
    expect(observeSecret(heldKey(), owned({}), URL)).toEqual({ state: 'LeftOver' })
    expect(observeSecret(heldKey(), owned({ name: 'another' }), URL)).toEqual({ state: 'Foreign', apiKey: 'another' })
    for (const change of [{ kind: 'ServedModel' }, { controller: false }])
      expect(observeSecret(heldKey(), owned(change), URL)).toEqual({ state: 'Foreign' })
  })

  test.each(['', 'abc', '1.5', '-1', '1e300', '99999999999999999999'])(
    'a generation that a user edited (%j) counts as 0, so that a lost key can still be restored from the Secret',
    (generation) => {
      const annotations = { ...written().metadata.annotations, 'headgate.dev/generation': generation }
      const seen = observeSecret(heldKey(), { ...written(), metadata: { ...written().metadata, annotations } }, URL)
      expect(seen).toMatchObject({ state: 'Ours', generation: 0, keyID: id })
    },
  )

  test('a Secret without data holds no minted value', () => {
    const { data: _none, ...empty } = written()
    expect(observeSecret(heldKey(), empty, URL)).toMatchObject({ state: 'Ours', hash: undefined })
  })
})

describe('refreshedSecret', () => {
  test('another public URL changes only the three URLs', () => {
    const refreshed = refreshedSecret(heldKey(), written(), 'https://new.example')
    const before = plain(written())
    const after = plain({ data: refreshed?.data ?? {} })
    const changed = Object.keys(after).filter((name) => after[name] !== before[name])
    expect(changed).toEqual(['SERVICE_BASE_URL', 'OPENAI_BASE_URL', 'ANTHROPIC_BASE_URL'])
    expect(observeSecret(heldKey(), written(), 'https://new.example')).toMatchObject({ current: false })
  })

  test('entries, labels and annotations of other owners stay', () => {
    const secret = written()
    const shared: Secret = {
      ...secret,
      data: { ...secret.data, EXTRA: 'eA==' },
      metadata: {
        ...secret.metadata,
        labels: { ...secret.metadata.labels, argo: 'x' },
        annotations: { ...secret.metadata.annotations, argo: 'y' },
      },
    }
    expect(refreshedSecret(heldKey(), shared, URL)).toBeUndefined()
    const refreshed = refreshedSecret(heldKey({ secret: { retention: 'Keep', template: { labels: { team: 'ml' } } } }), shared, URL)
    expect(refreshed?.data).toMatchObject({ EXTRA: 'eA==' })
    expect(refreshed?.metadata.labels).toMatchObject({ argo: 'x', team: 'ml' })
    expect(refreshed?.metadata.annotations).toMatchObject({ argo: 'y', 'headgate.dev/key-id': id })
  })
})

describe('ANTHROPIC_API_KEY', () => {
  const including = heldKey({ secret: { retention: 'Keep', anthropicApiKey: 'Include' } })
  const omitting = heldKey({ secret: { retention: 'Keep', anthropicApiKey: 'Omit' } })

  test('is written only if the ApiKey asks for it', () => {
    expect(plain(written(including))).toEqual({ ...plain(written()), ANTHROPIC_API_KEY: credential })
    expect(written(omitting)).toEqual(written())
    expect(plain(trialSecret(including, URL))).toHaveProperty('ANTHROPIC_API_KEY', 'trial')
  })

  test('that a user has added stays if the ApiKey does not ask for it', () => {
    const added: Secret = { ...written(), data: { ...written().data, ANTHROPIC_API_KEY: 'eA==' } }
    for (const key of [heldKey(), omitting]) expect(refreshedSecret(key, added, URL)).toBeUndefined()
  })

  test('is the only entry that an edited annotation can remove', () => {
    const before = written(including)
    const annotations = {
      ...before.metadata.annotations,
      'headgate.dev/template': '{"labels":[],"annotations":[],"entries":["SERVICE_API_KEY","EXTRA","ANTHROPIC_API_KEY"]}',
    }
    const edited: Secret = { ...before, data: { ...before.data, EXTRA: 'eA==' }, metadata: { ...before.metadata, annotations } }
    expect(refreshedSecret(omitting, edited, URL)?.data).toEqual({ ...written().data, EXTRA: 'eA==' })
  })
})

describe('a template that has changed', () => {
  const withTemplate = (labels: Record<string, string>, annotations: Record<string, string> = {}) =>
    heldKey({ secret: { retention: 'Keep', template: { labels, annotations } } })

  test('a label that is removed from the template is removed from the Secret, and labels of other owners stay', () => {
    const before = written(withTemplate({ team: 'shop', tier: 'gold' }, { note: 'x' }), URL)
    const labelled = { ...before, metadata: { ...before.metadata, labels: { ...before.metadata.labels, foreign: 'yes' } } }
    const after = refreshedSecret(withTemplate({ team: 'shop' }), labelled, URL)
    expect(after?.metadata.labels).toEqual({ team: 'shop', foreign: 'yes', 'app.kubernetes.io/managed-by': 'headgate-operator' })
    expect(after?.metadata.annotations).not.toHaveProperty('note')
    const refreshed = { ...labelled, ...after, metadata: { ...labelled.metadata, ...after?.metadata } }
    expect(refreshedSecret(withTemplate({ team: 'shop' }), refreshed, URL)).toBeUndefined()
    expect(refreshedSecret(heldKey(), refreshed, URL)?.metadata.labels).not.toHaveProperty('team')
  })
})
