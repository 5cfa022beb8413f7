import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { run } from '../run.ts'

const never = (): Promise<never> => Promise.reject(new Error('not called'))

type Spec = Readonly<Record<string, unknown>>

/** A cluster with Credits, and a `make run` of the same Accounts. */
class World {
  readonly credits = new Map<string, { spec: Spec; status?: unknown }>()
  readonly accounts = new Map<string, unknown>()
  readonly files = new Map<string, string>()
  /** Arguments of kubectl. */
  readonly calls: string[] = []
  readonly asked: string[] = []
  /** Fails instead of kubectl. */
  failure: string | undefined
  answer: { status: number; body: unknown } = { status: 200, body: {} }
  sleptMs = 0
  /** The folder that `make run` reads. */
  manifests = 'manifests'
  /** Called at each sleep: time passes for the operator too. */
  onSleep: () => void = () => undefined

  async run(args: string): Promise<{ code: number; out: string; report: string }> {
    let [out, report] = ['', '']
    const code = await run(args.split(' ').filter(Boolean), {
      ...{ readInput: never, writeFile: never, now: () => 0, usageToken: () => 'from-env' },
      readFile: (path) => Promise.resolve(this.files.get(path) ?? ''),
      print: (text) => void (out += text),
      report: (text) => void (report += text),
      kubectl: (words, input) => Promise.resolve(this.#kubectl(words, input)),
      local: {
        usageURL: () => Promise.resolve('http://127.0.0.1:7'),
        manifests: () => Promise.resolve(this.manifests),
        object: (_, name) => Promise.resolve(this.accounts.get(name)),
      },
      reachOperator: (access, use) => use(`http://${access.service}.${access.namespace}`, `token-of-${access.serviceAccount}`),
      fetch: (url, init) => {
        this.asked.push(`${new Request(url).url} ${new Headers(init?.headers).get('authorization') ?? 'no token'}`)
        const { status, body } = this.answer
        return Promise.resolve(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status }))
      },
      sleep: (ms) => {
        this.sleptMs += ms
        this.onSleep()
        return Promise.resolve()
      },
      createFile: (path, content) => {
        if (!path.startsWith('manifests/')) return Promise.reject(Object.assign(new Error('no folder'), { code: 'ENOENT' }))
        if (this.files.has(path)) return Promise.resolve(false)
        this.files.set(path, content)
        return Promise.resolve(true)
      },
    })
    return { code, out, report }
  }

  #kubectl(words: readonly string[], input = ''): { isDone: true; output: string } | { isDone: false; why: string } {
    this.calls.push(words.join(' '))
    if (this.failure !== undefined) return { isDone: false, why: this.failure }
    if (words.includes('create')) return this.#create(input)
    const name = words.at(words.indexOf('get') + 2) ?? ''
    const object = words.includes('accounts.headgate.dev') ? this.accounts.get(name) : this.credits.get(name)
    if (object === undefined) return { isDone: false, why: `Error from server (NotFound): "${name}" not found` }
    return { isDone: true, output: JSON.stringify({ kind: 'Credit', ...(object as object) }) }
  }

  #create(input: string): { isDone: true; output: string } | { isDone: false; why: string } {
    const { metadata, spec } = JSON.parse(input) as { metadata: { name: string }; spec: Spec }
    if (this.credits.has(metadata.name)) return { isDone: false, why: 'Error from server (AlreadyExists): credits "x" already exists' }
    this.credits.set(metadata.name, { spec })
    return { isDone: true, output: '' }
  }

  /** The operator writes the condition Booked. */
  book(id: string, reason = 'Booked', message = ''): void {
    const status = reason === 'Booked' ? 'True' : 'False'
    const credit = this.credits.get(id)
    if (credit) credit.status = { conditions: [{ type: 'Booked', status, reason, message }] }
  }
}

describe('headgate credit add', () => {
  test('creates a Credit and waits until it counts', async () => {
    const world = new World()
    world.onSleep = () => (world.sleptMs >= 1_000 ? world.book('pay-1') : undefined)
    const { code, out, report } = await world.run('credit add acme 25.00 --id pay-1 --reference pi_1 --context prod')
    expect([code, report]).toEqual([0, 'Credit pay-1 is created\n'])
    expect(out).toMatch(/^pay-1: 25(\.00)? for acme, booked\n$/)
    expect(world.credits.get('pay-1')?.spec).toEqual({
      ...{ accountRef: { name: 'acme' }, type: 'TopUp', reference: 'pi_1' },
      amount: expect.stringMatching(/^25(\.00)?$/),
    })
    expect(world.calls.every((call) => call.startsWith('--context prod '))).toBe(true)
  })

  test('of an id that exists says whether it is the same payment, and adds nothing', async () => {
    const world = new World()
    world.credits.set('pay-1', { spec: { accountRef: { name: 'acme' }, amount: '25', type: 'TopUp', reference: 'pi_1' } })
    world.book('pay-1')
    const again = await world.run('credit add acme 25.00 --id pay-1 --reference pi_1')
    expect([again.code, again.report]).toEqual([0, expect.stringContaining('it is the same payment, and counts once')])
    const other = await world.run('credit add beta 20 --id pay-1')
    expect([other.code, other.out]).toEqual([1, ''])
    expect(other.report).toMatch(
      /account acme instead of beta and amount 25 instead of 20(\.00)? and reference "pi_1" instead of ""; nothing was added/,
    )
    expect(world.credits.size).toBe(1)
  })

  test('takes a negative amount as it stands, and asks what it is', async () => {
    const world = new World()
    world.onSleep = () => world.book('back-1')
    expect((await world.run('credit add acme -3.50 --id back-1')).report).toMatch(/--type is missing: a negative AMOUNT is a Refund/)
    expect((await world.run('credit add acme -3.50 --id back-1 --type Refund')).code).toBe(0)
    expect(world.credits.get('back-1')?.spec).toMatchObject({ amount: expect.stringMatching(/^-3\.50?$/), type: 'Refund' })
  })

  test.each([
    ['AccountNotFound', 'there are no books of this name', 'AccountNotFound: there are no books of this name'],
    ['IdUsed', 'the id is another payment', 'IdUsed: the id is another payment'],
  ])('ends with 3 for a Credit that does not count (%s), and says why', async (reason, message, why) => {
    const world = new World()
    world.onSleep = () => world.book('pay-1', reason, message)
    const { code, out, report } = await world.run('credit add acme 1 --id pay-1')
    expect([code, out, report]).toEqual([3, '', expect.stringContaining(`does not count (${why})`)])
    expect(world.sleptMs).toBeLessThan(10_000)
  })

  test('waits 10 s for an operator that does not answer', async () => {
    const world = new World()
    const { code, report } = await world.run('credit add acme 1 --id pay-1')
    expect([code, world.sleptMs, report]).toEqual([3, 10_000, expect.stringContaining('no operator has seen it in 10 s')])
  })

  test('shows what kubectl says', async () => {
    const world = new World()
    world.failure = 'Error from server (Forbidden): credits.headgate.dev is forbidden'
    expect(await world.run('credit add acme 1 --id pay-1')).toEqual({
      ...{ code: 1, out: '' },
      report: 'headgate: kubectl create: Error from server (Forbidden): credits.headgate.dev is forbidden\n',
    })
  })

  test('with --local writes a manifest that `make run` reads, once', async () => {
    const world = new World()
    const { code, out } = await world.run('credit add acme 10 --id welcome --type Grant --local')
    expect([code, out]).toEqual([0, 'manifests/credit-welcome.yaml\n'])
    const text = world.files.get('manifests/credit-welcome.yaml') ?? ''
    expect(text.endsWith('\n')).toBe(true)
    expect(parse(text)).toMatchObject({
      ...{ apiVersion: 'headgate.dev/v1alpha1', kind: 'Credit', metadata: { name: 'welcome' } },
      spec: { accountRef: { name: 'acme' }, amount: expect.any(String), type: 'Grant' },
    })
    expect((await world.run('credit add acme 10.00 --id welcome --type Grant --local')).report).toContain('same payment')
    expect(await world.run('credit add acme 11 --id welcome --local')).toMatchObject({
      code: 1,
      report: expect.stringContaining('amount 10'),
    })
    world.files.set('manifests/credit-mine.yaml', 'kind: Plan\n')
    expect((await world.run('credit add acme 1 --id mine --local')).report).toContain('exists, and is not a Credit')
    world.manifests = 'elsewhere'
    expect((await world.run('credit add acme 1 --id x --local')).report).toContain(
      'elsewhere/credit-x.yaml cannot be written (ENOENT); `make run` reads the folder elsewhere',
    )
    expect(world.calls).toEqual([])
  })

  test.each([
    ['credit', 'only add is known'],
    ['credit remove acme', 'credit "remove": only add is known'],
    ['credit add', 'ACCOUNT is missing'],
    ['credit add Acme 1 --id a', '"Acme" is not the name of an Account'],
    ['credit add acme --id a', 'AMOUNT is missing: write headgate credit add acme AMOUNT --id ID'],
    ['credit add acme 1,5 --id a', 'AMOUNT "1,5" is not an amount: write at most 9 digits before the point'],
    ['credit add acme 0.0000001 --id a', 'is not an amount'],
    ['credit add acme 1e3 --id a', 'is not an amount'],
    ['credit add acme 0 --id a', 'AMOUNT is 0'],
    ['credit add acme 1', '--id is missing'],
    ['credit add acme 1 --id Pi_3Q', '--id "Pi_3Q" is not a DNS name'],
    ['credit add acme 1 --id a --type Bonus', '--type "Bonus": use TopUp, Grant, Refund, Dispute or Adjustment'],
    [`credit add acme 1 --id a --reference ${'x'.repeat(129)}`, '--reference has 129 characters: use at most 128'],
    ['credit add acme 1 2 --id a', 'one AMOUNT at a time'],
    ['credit add acme 1 --id a --local --context c', '--local and --context are both given'],
    ['credit add acme 1 --id a --now', 'headgate credit --help lists the options'],
  ])('ends with 2 for `%s`, and changes nothing', async (args, why) => {
    const world = new World()
    expect(await world.run(args)).toMatchObject({ code: 2, out: '', report: expect.stringContaining(why) })
    expect([world.calls, world.files.size]).toEqual([[], 0])
  })
})

describe('headgate balance', () => {
  const balance = { amount: '-0.50', currency: 'EUR', asOf: '2026-11-27T10:00:00Z' }
  const account = (status: unknown): unknown => ({ kind: 'Account', spec: { billing: 'Prepaid' }, status })

  test('prints the balance that the operator wrote, and says how old it is', async () => {
    const world = new World()
    world.accounts.set('acme', account({ balance, spent: '25.50', conditions: [] }))
    expect(await world.run('balance acme')).toEqual({
      ...{ code: 0, out: '-0.50 EUR\n' },
      report: 'acme, Prepaid, 25.50 spent, as of 2026-11-27T10:00:00Z\n',
    })
    expect(world.calls).toEqual(['get accounts.headgate.dev acme -o json'])
  })

  test('of `make run` is read without kubectl', async () => {
    const world = new World()
    world.accounts.set('acme', account({ balance }))
    expect(await world.run('balance acme --local')).toMatchObject({ code: 0, out: '-0.50 EUR\n' })
    expect(await world.run('balance other --local')).toMatchObject({ code: 1, report: expect.stringContaining('has no Account other') })
    expect(world.calls).toEqual([])
  })

  test('that is used up names the remedy', async () => {
    const world = new World()
    const conditions = [{ type: 'BalanceExhausted', status: 'True', reason: 'BalanceExhausted', message: 'used up' }]
    world.accounts.set('acme', account({ balance, conditions }))
    expect((await world.run('balance acme')).report).toContain('keys answer 402; headgate credit add acme AMOUNT --id ID adds a Credit')
  })

  test('that is not there is an error with its reason', async () => {
    const world = new World()
    const conditions = [{ type: 'Accepted', status: 'False', reason: 'NameUsed', message: 'Name the Account that it succeeds.' }]
    world.accounts.set('acme', account({ conditions }))
    expect(await world.run('balance acme')).toMatchObject({ code: 1, report: expect.stringContaining('(NameUsed). Name the Account') })
    world.accounts.set('acme', { kind: 'Account', spec: { billing: 'Unmetered' }, status: { spent: '3.00' } })
    expect((await world.run('balance acme')).report).toContain('it is Unmetered and never had a Credit; its keys have spent 3.00')
    world.accounts.set('acme', account(undefined))
    expect((await world.run('balance acme')).report).toContain('the operator writes it when it has opened the books')
    expect((await world.run('balance other')).report).toContain('kubectl get: Error from server (NotFound)')
  })

  test.each([
    ['balance', 'ACCOUNT is missing; headgate balance --help'],
    ['balance a b', 'one ACCOUNT at a time'],
    ['balance a --local --context c', '--local and --context are both given'],
  ])('ends with 2 for `%s`', async (args, why) => {
    expect(await new World().run(args)).toMatchObject({ code: 2, report: expect.stringContaining(why) })
  })
})

describe('headgate ledger', () => {
  const body = {
    ...{ account: 'acme', currency: 'EUR', asOf: '2026-11-27T10:00:00.000Z', balance: '22.00', credits: '25.00', spent: '3.00' },
    incomplete: ['2026-11-26'],
    rows: [
      { time: '2026-11-20T10:00:00Z', type: 'TopUp', id: 'pay-1', reference: 'pi_1\u001b[2J', amount: '25.00' },
      { time: '2026-11-26', type: 'Spend', id: '', reference: '', amount: '-3.00' },
    ],
  }

  test('prints a table, and the balance with its parts', async () => {
    const world = new World()
    world.answer = { status: 200, body }
    const { code, out, report } = await world.run('ledger acme --service-account billing')
    expect(world.asked).toEqual([
      'http://headgate-operator-usage.headgate/usage/v1/accounts/acme/ledger?format=json Bearer token-of-billing',
    ])
    expect([code, out.split('\n').map((line) => line.replaceAll(/ {3,}/g, ' | '))]).toEqual([
      0,
      [
        'TIME | TYPE | ID | REFERENCE | AMOUNT',
        '2026-11-20T10:00:00Z | TopUp | pay-1 | pi_1?[2J | 25.00',
        '2026-11-26 | Spend | -3.00',
        '',
      ],
    ])
    expect(report).toMatch(/^acme: 22\.00 EUR, which is 25\.00 of Credits without 3\.00 spent, as of 2026-11-27T10:00:00\.000Z\n/)
    expect(report).toContain('the spend of 2026-11-26 is itemised in part')
  })

  test('passes CSV and JSON on as they are', async () => {
    const world = new World()
    world.answer = { status: 200, body: 'time,amount\r\n' }
    expect((await world.run('ledger acme --local --csv')).out).toBe('time,amount\r\n')
    expect((await world.run('ledger acme --url http://127.0.0.1:1 -o csv')).out).toBe('time,amount\r\n')
    world.answer = { status: 200, body }
    expect(JSON.parse((await world.run('ledger acme --local -o json')).out)).toEqual(body)
    expect(world.asked).toEqual([
      'http://127.0.0.1:7/usage/v1/accounts/acme/ledger?format=csv no token',
      'http://127.0.0.1:1/usage/v1/accounts/acme/ledger?format=csv Bearer from-env',
      'http://127.0.0.1:7/usage/v1/accounts/acme/ledger?format=json no token',
    ])
  })

  test('of an account without movements says so', async () => {
    const world = new World()
    world.answer = { status: 200, body: { ...body, rows: [], incomplete: [] } }
    expect((await world.run('ledger acme --local')).out).toBe('no movements\n')
  })

  test('that is refused is an error with the reason', async () => {
    const world = new World()
    world.answer = { status: 403, body: { error: { message: 'x may not read the ledger of this account' } } }
    expect(await world.run('ledger acme --service-account x')).toMatchObject({
      code: 1,
      report: expect.stringContaining('403: x may not read'),
    })
  })

  test.each([
    ['ledger', 'ACCOUNT is missing; headgate ledger --help'],
    ['ledger acme', '--service-account is missing: name one in the namespace of the operator that may get accounts/ledger'],
    ['ledger acme --local --csv -o json', '--csv and --output are both given'],
    ['ledger acme --local -o xml', '--output "xml": use table, csv or json'],
  ])('ends with 2 for `%s`, and asks nobody', async (args, why) => {
    const world = new World()
    expect(await world.run(args)).toMatchObject({ code: 2, report: expect.stringContaining(why) })
    expect(world.asked).toEqual([])
  })
})
