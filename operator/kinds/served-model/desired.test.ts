import { describe, expect, test } from 'vitest'
import { decodeModelRecord, encodeModelRecord } from '#contract/records/model-record.ts'
import { servedModel } from '../../../test/support/objects.ts'
import { surroundings } from '../../../test/support/observed-model.ts'
import { coldStartRecord, desiredModel } from './desired.ts'
import type { ModelSurroundings, ObservedBackend, ObservedCredential } from './observed.ts'

type Spec = NonNullable<Parameters<typeof servedModel>[1]>
const BORN = { uid: 'uid-1', creationTimestamp: '2026-01-01T00:00:05Z' }
const SUM = 'ab'.repeat(32)
const FORMER = 'cd'.repeat(32)
const up = (name = 'one', change: Partial<ObservedBackend> = {}): ObservedBackend => ({
  name,
  service: { found: true, ready: ['10.0.0.1:8080'], total: 1 },
  credential: { state: 'NotUsed' },
  reachable: undefined,
  ...change,
})
const url = (address: string, name = 'one') => ({ name, url: address })
const atUrl = (name = 'one', change: Partial<ObservedBackend> = {}): ObservedBackend => up(name, { service: undefined, ...change })
const found = (hosts: string[] = [], change: object = {}): ObservedCredential => ({
  state: 'Found',
  sum: SUM,
  origins: new Set(hosts.map((host) => `https://${host}`)),
  ...change,
})

const around = (spec: Spec, backends: ObservedBackend[], change: Partial<ModelSurroundings> = {}): ModelSurroundings =>
  surroundings(servedModel('llama', spec, BORN), backends, change)

/** A model with one url backend and its credential. */
const withCredential = (credential: ObservedCredential, change: Partial<ModelSurroundings> = {}) =>
  desiredModel(
    around(
      { backends: [{ ...url('https://models.example'), authSecretRef: { name: 'upstream' } }] },
      [atUrl('one', { credential })],
      change,
    ),
  )

describe('desired record of a ServedModel', () => {
  test('without a price of their own, cached prompt tokens cost as much as other prompt tokens', () => {
    const { record } = desiredModel(around({ pricing: { inputPerMillion: '2', outputPerMillion: '0' } }, [up('one')]))
    expect(record?.pricing).toEqual({ inputPerMillion: 2_000_000, outputPerMillion: 0, cachedInputPerMillion: 2_000_000 })
  })

  test('every field of the manifest reaches the record, in the form that gateways read', () => {
    const spec: Spec = {
      servedName: 'llama-3.1-8b',
      aliases: ['small', 'llama'],
      description: 'Answers questions about code.',
      timeouts: { firstByteSeconds: 10, idleSeconds: 20, totalSeconds: 30 },
      backends: [
        { name: 'one', service: { name: 'llama', port: 8000 }, weight: 7, messages: 'Native', upstreamModel: 'meta/llama' },
        { name: 'two', url: 'https://models.example/base', authSecretRef: { name: 'upstream' }, streamUsage: 'Estimate' },
      ],
      pricing: {
        ...{ inputPerMillion: '0.15', outputPerMillion: '999999999.999999' },
        ...{ cachedInputPerMillion: '0', cacheWritePerMillion: '0.1875', perRequest: '0.002' },
      },
      contextTokens: 131_072,
      maxOutputTokens: 4096,
      forwardHeaders: ['X-Conversation-Id', 'x-a'],
    }
    const { record, problems } = desiredModel(
      around(spec, [up('one'), atUrl('two', { credential: found(['models.example'], { former: FORMER }) })]),
    )
    expect(problems).toEqual([])
    expect(record).toMatchObject({
      revision: 0,
      uid: 'uid-1',
      namespace: 'shop',
      name: 'llama',
      createdMs: Date.parse(BORN.creationTimestamp),
      servedName: 'llama-3.1-8b',
      aliases: ['llama', 'small'],
      description: 'Answers questions about code.',
      allowedNamespaces: ['shop'],
      timeouts: { firstByteSeconds: 10, idleSeconds: 20, totalSeconds: 30 },
      pricing: {
        ...{ inputPerMillion: 150_000, outputPerMillion: 999_999_999_999_999 },
        ...{ cachedInputPerMillion: 0, cacheWritePerMillion: 187_500, perRequest: 2_000 },
      },
      contextTokens: 131_072,
      maxOutputTokens: 4096,
      forwardHeaders: ['x-a', 'x-conversation-id'],
    })
    expect(record?.backends).toEqual([
      {
        name: 'one',
        endpoints: ['10.0.0.1:8080'],
        service: 'llama.shop.svc:8000',
        url: null,
        upstreamModel: 'meta/llama',
        weight: 7,
        routes: ['chat/completions', 'messages'],
        engine: 'Other',
        streamUsage: 'Inject',
        credentialSum: null,
        formerCredentialSum: null,
      },
      {
        name: 'two',
        endpoints: [],
        service: null,
        url: 'https://models.example/base',
        upstreamModel: 'llama-3.1-8b',
        weight: 100,
        routes: ['chat/completions'],
        engine: 'Other',
        streamUsage: 'Estimate',
        credentialSum: SUM,
        formerCredentialSum: FORMER,
      },
    ])
    expect(record && decodeModelRecord(encodeModelRecord(record))).toEqual(record)
  })

  test.each<[string, Partial<ModelSurroundings>, '*' | string[]]>([
    ['Published to all', { publishing: 'Published' }, '*'],
    ['NotAllowed', { publishing: 'NotAllowed' }, ['shop']],
    ['NoLabels', { publishing: 'NoLabels' }, ['shop']],
  ])('a model that is %s gets exactly its allowed namespaces', (_what, change, allow) => {
    expect(desiredModel(around({ allowedNamespaces: { from: 'All' } }, [up()], change)).record?.allowedNamespaces).toEqual(allow)
  })

  test('a model that may not be published has a problem, which names the remedy and the namespace that can use the model', () => {
    const [notAllowed] = desiredModel(around({}, [up()], { publishing: 'NotAllowed' })).problems
    expect(notAllowed).toMatchObject({ reason: 'PublishingNotAllowed', isBlocking: false })
    expect(notAllowed?.message).toMatch(/scope\.publishers.*only keys of namespace shop can use the model/)
    const [noLabels] = desiredModel(around({}, [up()], { publishing: 'NoLabels' })).problems
    expect(noLabels?.message).toMatch(/scope\.namespaceLabels.*only keys of namespace shop/)
  })

  test('a model beyond the bound of its namespace has no record, and only this problem is reported', () => {
    const desired = desiredModel(around({ backends: [url('http://localhost')] }, [atUrl()], { hasPlace: false }))
    expect(desired.record).toBeUndefined()
    expect(desired.problems).toEqual([
      { reason: 'NamespaceLimitReached', isBlocking: true, message: expect.stringContaining('more than 200 ServedModels') },
    ])
  })

  test.each<[string, Spec, ObservedBackend, string, RegExp]>([
    [
      'a missing Service',
      {},
      up('one', { service: { found: false, problem: 'Service llama has no port 81' } }),
      'ServiceNotFound',
      /^backends\[one\]\.service: Service llama has no port 81\./,
    ],
    ...[
      'http://127.0.0.1:8000',
      'http://localhost',
      'http://169.254.169.254',
      'http://[::1]:80',
      'http://user@models.example',
      'ftp://x.example',
    ].map((address): [string, Spec, ObservedBackend, string, RegExp] => [
      address,
      { backends: [url(address)] },
      atUrl(),
      'AddressRefused',
      /^backends\[one\]\.url is refused/,
    ]),
  ])(
    '%s takes the model away from the gateways, and the problem names the field of the manifest',
    (...[, spec, backend, reason, message]) => {
      const { record, problems } = desiredModel(around(spec, [backend]))
      expect(record).toBeUndefined()
      expect(problems).toEqual([{ reason, isBlocking: true, message: expect.stringMatching(message) }])
    },
  )

  test('only standalone allows loopback addresses', () => {
    const { record } = desiredModel(around({ backends: [url('http://127.0.0.1:8000')] }, [atUrl()], { addresses: { allowLoopback: true } }))
    expect(record?.backends[0]?.url).toBe('http://127.0.0.1:8000')
  })

  test('an endpoint with a refused address never reaches the record, even if a slice has the address', () => {
    const ready = ['10.0.0.1:8080', '127.0.0.1:8080', '169.254.169.254:80']
    expect(desiredModel(around({}, [up('one', { service: { found: true, ready, total: 3 } })])).record?.backends[0]?.endpoints).toEqual([
      '10.0.0.1:8080',
    ])
  })

  test('a wrong backend is left out and named; the other backends serve', () => {
    const backends = [url('http://localhost', 'bad'), url('http://models.example', 'good')]
    const { record, problems } = desiredModel(around({ backends }, [atUrl('bad'), atUrl('good')]))
    expect(record?.backends.map(({ name }) => name)).toEqual(['good'])
    expect(problems).toMatchObject([{ reason: 'AddressRefused', message: expect.stringContaining('[bad]') }])
  })

  test.each(['http://vllm.team-b.svc:8000', 'http://10.9.9.9', 'http://vllm'])(
    'the url %s, inside the cluster, is refused unless the administrator lists the namespace',
    (inside) => {
      const { record, problems } = desiredModel(around({ backends: [url(inside)] }, [atUrl()]))
      expect(record).toBeUndefined()
      expect(problems).toEqual([
        {
          reason: 'AddressRefused',
          isBlocking: true,
          message:
            'backends[one].url is refused: it is an address inside the cluster. ' +
            'Name a Service of this namespace in service, or ask the administrator to add the namespace to the chart value scope.clusterAddresses.',
        },
      ])
      const listed = { addresses: { allowLoopback: false, allowCluster: true } }
      expect(desiredModel(around({ backends: [url(inside)] }, [atUrl()], listed)).record?.backends[0]?.url).toBe(inside)
    },
  )

  test('every problem is named, blocking problems first', () => {
    const backends = [{ ...url('https://a.example', 'a'), authSecretRef: { name: 's' } }, url('http://localhost', 'b')]
    const seen = [atUrl('a', { credential: found(['a.example'], { unreadable: '403' }) }), atUrl('b')]
    const { problems } = desiredModel(around({ backends }, seen, { publishing: 'NotAllowed' }))
    expect(problems.map(({ reason }) => reason)).toEqual(['AddressRefused', 'SecretUnreadable', 'PublishingNotAllowed'])
  })

  test('a header that is never forwarded is named with its field and the reason; the others are forwarded, and the model serves', () => {
    const { record, problems } = desiredModel(around({ forwardHeaders: ['X-Tenant', 'Authorization', 'x-user-id'] }, [up()]))
    expect(record?.forwardHeaders).toEqual(['x-tenant'])
    expect(problems).toMatchObject([{ reason: 'HeaderRefused', isBlocking: false }])
    expect(problems[0]?.message).toBe(
      'forwardHeaders[1]: "Authorization" may not be forwarded, since it holds a credential; ' +
        'forwardHeaders[2]: "x-user-id" may not be forwarded, since it claims an identity. ' +
        'Take such names out of the list; the other headers are sent.',
    )
    expect(desiredModel(around({ forwardHeaders: ['Cookie'] }, [up()])).record).not.toHaveProperty('forwardHeaders')
  })

  test.each<[object, object]>([
    [{}, {}],
    [{ scheme: 'Bearer' }, {}],
    [{ scheme: 'Token' }, { credentialHeader: 'authorization', credentialScheme: 'Token' }],
    [{ header: 'X-Api-Key' }, { credentialHeader: 'x-api-key', credentialScheme: '' }],
    [
      { header: 'x-auth', scheme: 'Key' },
      { credentialHeader: 'x-auth', credentialScheme: 'Key' },
    ],
  ])('a credential by %j is sent as %j', (place, expected) => {
    const spec: Spec = { backends: [{ ...url('https://models.example'), authSecretRef: { name: 'upstream', ...place } }] }
    const { record, problems } = desiredModel(around(spec, [atUrl('one', { credential: found(['models.example']) })]))
    const { credentialHeader, credentialScheme } = record?.backends[0] ?? {}
    expect([{ credentialHeader, credentialScheme }, problems]).toEqual([
      { credentialHeader: undefined, credentialScheme: undefined, ...expected },
      [],
    ])
  })

  test.each(['Host', 'content-length', 'Transfer-Encoding', 'proxy-authorization', 'cookie', 'x-request-id', 'x-forwarded-for'])(
    'a credential in the header %s is sent nowhere',
    (header) => {
      const spec: Spec = { backends: [{ ...url('https://models.example'), authSecretRef: { name: 'upstream', header } }] }
      const { record, problems } = desiredModel(around(spec, [atUrl('one', { credential: found(['models.example']) })]))
      expect(record).toBeUndefined()
      expect(problems).toMatchObject([
        { reason: 'HeaderRefused', isBlocking: true, message: expect.stringContaining('authSecretRef.header') },
      ])
    },
  )

  test('fixed headers of a backend reach its record, without credentials and headers of the connection, which are named', () => {
    const names = ['Anthropic-Version', 'X-Api-Key', 'authorization', 'Host', 'Connection', 'Content-Length', 'my-token']
    const spec: Spec = { backends: [{ ...url('https://models.example'), headers: names.map((name) => ({ name, value: '1' })) }] }
    const { record, problems } = desiredModel(around(spec, [atUrl()]))
    expect(record?.backends[0]?.headers).toEqual([{ name: 'anthropic-version', value: '1' }])
    expect(problems).toMatchObject([{ reason: 'HeaderRefused', isBlocking: false }])
    expect(problems[0]?.message.match(/backends\[one\]\.headers/g)).toHaveLength(6)
  })

  test('a salt and refused fields reach the record; without them the record has neither', () => {
    const { record } = desiredModel(around({ cacheSalt: 'Tenant', refusedFields: ['user', 'logit_bias'] }, [up()]))
    expect(record).toMatchObject({ cacheSalt: expect.stringMatching(/^[0-9a-f]{64}$/), refusedFields: ['logit_bias', 'user'] })
    for (const field of ['cacheSalt', 'refusedFields'])
      expect(desiredModel(around({ refusedFields: [] }, [up()])).record).not.toHaveProperty(field)
  })

  test('the key of salts is the same at each look, and another for another model or another secret of the installation', () => {
    const keyOf = (change: Partial<ModelSurroundings> = {}, uid = BORN.uid) =>
      desiredModel(surroundings(servedModel('llama', { cacheSalt: 'Tenant' }, { ...BORN, uid }), [up()], change)).record?.cacheSalt
    expect(keyOf()).toBe(keyOf())
    expect(new Set([keyOf(), keyOf({ secret: 'another' }), keyOf({}, 'uid-2')]).size).toBe(3)
  })

  test('a header that is refused hides no other problem: a model that may not be published still says so first', () => {
    const { problems } = desiredModel(around({ forwardHeaders: ['Cookie'] }, [up()], { publishing: 'NotAllowed' }))
    expect(problems.map(({ reason }) => reason)).toEqual(['PublishingNotAllowed', 'HeaderRefused'])
  })

  test('a lost name is named with its owner; the record stays, since its other names work', () => {
    const conflict = (name: string) => desiredModel(around({ aliases: ['small'] }, [up()], { lostNames: [{ name, winner: 'other/old' }] }))
    expect(conflict('small').record).toBeDefined()
    expect(conflict('small').problems).toMatchObject([
      { reason: 'NameConflict', isBlocking: false, message: expect.stringContaining('"small" belongs to ServedModel other/old') },
    ])
    expect(conflict('llama').problems).toMatchObject([{ reason: 'NameConflict', isBlocking: true }])
  })

  test('an owner of several lost names is named once', () => {
    const lostNames = [...['a', 'b'].map((name) => ({ name, winner: 'shop/old' })), { name: 'c', winner: 'shop/older' }]
    expect(desiredModel(around({}, [up()], { lostNames })).problems[0]?.message).toBe(
      '"a", "b" belong to ServedModel shop/old, which is older; "c" belongs to ServedModel shop/older, which is older. ' +
        'Choose another name or alias; the other names of this model work.',
    )
  })

  test('the record of a cold start has Services instead of endpoints, so new pods do not change the record', () => {
    const some = desiredModel(around({}, [up()])).record
    const none = desiredModel(around({}, [up('one', { service: { found: true, ready: [], total: 0 } })])).record
    if (!some || !none) throw new Error('no record')
    expect(coldStartRecord(some)).toEqual(coldStartRecord(none))
    expect(coldStartRecord(some).backends[0]).toMatchObject({ endpoints: [], service: 'llama.shop.svc:8000' })
  })

  describe('the credential of a backend', () => {
    test.each<[string, ObservedCredential, string, RegExp]>([
      ['missing', { state: 'NotFound', problem: 'Secret upstream lacks the label' }, 'SecretNotFound', /Secret upstream lacks the label/],
      ['never read', { state: 'Unread' }, 'SecretUnreadable', /has not been read yet/],
      ['unreadable', { state: 'Unreadable', problem: '403 Forbidden' }, 'SecretUnreadable', /cannot be read \(403 Forbidden\)/],
      ['for other hosts', found(['api.openai.com']), 'CredentialHostNotAllowed', /Secret upstream may not be sent to models\.example/],
    ])('that is %s keeps the backend out of the record', (_what, credential, reason, message) => {
      const { record, problems } = withCredential(credential)
      expect(record).toBeUndefined()
      expect(problems).toEqual([{ reason, isBlocking: true, message: expect.stringMatching(message) }])
    })

    test('the message about a refused host names the entry that the owner must add, and no listed host', () => {
      const [problem] = withCredential(found(['api.openai.com'])).problems
      expect(problem?.message).toContain('headgate.dev/upstream-hosts: "models.example"')
      expect(problem?.message).not.toContain('openai')
    })

    test('plain http to a host outside the cluster needs the whole origin, and the message warns of plain http', () => {
      const spec: Spec = { backends: [{ ...url('http://models.example'), authSecretRef: { name: 'upstream' } }] }
      const [problem] = desiredModel(around(spec, [atUrl('one', { credential: found(['models.example']) })])).problems
      expect(problem?.message).toMatch(/upstream-hosts: "http:\/\/models\.example"\. Plain http sends the credential unencrypted/)
    })

    test('a Service in the namespace of the Secret needs no entry', () => {
      const spec: Spec = { backends: [{ name: 'one', service: { name: 'llama', port: 8000 }, authSecretRef: { name: 'upstream' } }] }
      expect(desiredModel(around(spec, [up('one', { credential: found() })])).problems).toEqual([])
    })

    test('a credential that becomes unreadable stays in use, and a problem says so', () => {
      const { record, problems } = withCredential(found(['models.example'], { unreadable: '403' }))
      expect(record?.backends[0]?.credentialSum).toBe(SUM)
      expect(problems).toMatchObject([{ reason: 'SecretUnreadable', isBlocking: false, message: expect.stringContaining('stays in use') }])
    })

    test('a credential of an earlier process stays in use until it is read, and the mounted Secrets stay unchanged', () => {
      const desired = withCredential({ state: 'Adopted', sum: SUM, former: FORMER })
      expect(desired.record?.backends[0]).toMatchObject({ credentialSum: SUM, formerCredentialSum: FORMER })
      expect(desired).toMatchObject({ problems: [], keepsMounted: true })
      expect(withCredential(found(['models.example'])).keepsMounted).toBe(false)
    })

    test('a credential that does not fit into the mounted Secrets blocks the model; a model without credentials is served from Redis', () => {
      const refusal = { mountRefusal: 'shard 3 would hold too much' }
      expect(withCredential(found(['models.example']), refusal).problems).toMatchObject([{ reason: 'CredentialsFull', isBlocking: true }])
      expect(desiredModel(around({}, [up()], refusal)).problems).toMatchObject([{ reason: 'CredentialsFull', isBlocking: false }])
    })
  })
})
