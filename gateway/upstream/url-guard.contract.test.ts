import type { LookupAddress } from 'node:dns'
import { describe, expect, it } from 'vitest'
import { Harness, CHAT, HELLO, backendRecord, json, modelRecord, startBackend } from '../../test/support/upstream-harness.ts'
import type { AddressRules } from '#contract/values/backend-address.ts'
import { guardedLookup, REFUSED_ADDRESS, type ResolveAll } from './name-lookup.ts'

function look(addresses: readonly string[], all: boolean, allowLoopback = false): Promise<unknown> {
  return lookFrom('models.example.com', addresses, { all, rules: { allowLoopback, allowCluster: true } })
}

interface From {
  readonly all: boolean
  readonly rules: AddressRules
  readonly namespace?: string
}

function lookFrom(hostname: string, addresses: readonly string[], { all, rules, namespace }: From): Promise<unknown> {
  const resolve: ResolveAll = (_, done) =>
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  return new Promise((settle) => {
    guardedLookup(rules, resolve, namespace)(hostname, { all }, (error, found: string | LookupAddress[]) =>
      settle(error ? error.code : found),
    )
  })
}

describe('a name at connect time', () => {
  it('leads to exactly the addresses that were checked', async () => {
    expect(await look(['10.0.0.1', 'fd00::1'], true)).toEqual([
      { address: '10.0.0.1', family: 4 },
      { address: 'fd00::1', family: 6 },
    ])
    expect(await look(['10.0.0.1', 'fd00::1'], false)).toBe('10.0.0.1')
  })

  it.each([['127.0.0.1'], ['169.254.169.254'], ['::1'], ['::ffff:127.0.0.1'], ['10.0.0.1', '0.0.0.0']])(
    'that has become %s %s is refused',
    async (...addresses) => {
      expect(await look(addresses, true)).toBe(REFUSED_ADDRESS)
      expect(await look(addresses, false)).toBe(REFUSED_ADDRESS)
    },
  )

  it.each(['10.1.2.3', '192.168.1.1', '172.20.0.1', '100.64.1.1', 'fd00::1'])(
    'that has become %s is refused in a namespace that may not call the cluster, unless it is a Service of that namespace',
    async (address) => {
      const from: From = { all: true, rules: { allowLoopback: false }, namespace: 'team-a' }
      for (const name of ['models.example.com', 'vllm.team-b.svc', 'vllm.team-b', 'x.evil-team-a.svc'])
        expect(await lookFrom(name, [address], from), name).toBe(REFUSED_ADDRESS)
      expect(await lookFrom('vllm.team-a.svc', [address], from)).toMatchObject([{ address }])
    },
  )

  it('may be loopback if the settings allow loopback', async () => {
    expect(await look(['127.0.0.1'], false, true)).toBe('127.0.0.1')
  })

  it('without an address is not found', async () => {
    expect(await look([], true)).toBe('ENOTFOUND')
  })
})

describe('a backend on loopback', () => {
  it('is not called by a gateway of a cluster, neither by address nor by name', async () => {
    const backend = await startBackend(json(200, { choices: [] }))
    const port = backend.address.split(':')[1] ?? ''
    const gateway = await new Harness({ addresses: { allowLoopback: false } }).start()
    for (const record of [
      { endpoints: [backend.address] },
      { url: `http://localhost:${port}` },
      { url: `http://127.0.0.1:${port}` },
      { url: `http://[::ffff:7f00:1]:${port}` },
    ]) {
      gateway.put(modelRecord({ backends: [backendRecord(record)] }))
      expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 503 })
    }
    expect(backend.received).toEqual([])
  })
})
