/** Records that somebody else than the operator has written to Redis. */
import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { credentialProof } from '#contract/records/credential-proof.ts'
import type { BackendRecord } from '#contract/records/model-record.ts'
import type { Log } from '#platform/log.ts'
import { backendRecord, CHAT, HELLO, Harness, json, modelRecord, startBackend } from '../../test/support/upstream-harness.ts'
import { BackendCredentials } from './backend-credentials.ts'

const VALUE = 'org-owned-upstream-token-123'
const FORMER = 'org-owned-upstream-token-122'
const OK = { id: 'c1', object: 'chat.completion', model: 'llama', choices: [] }
const sumOf = (value: string): string => hash('sha256', value, 'hex')

async function gatewayWith(...mounted: readonly string[]) {
  const lines: string[] = []
  const credentials = new BackendCredentials({ warn: (line: string) => void lines.push(line) } as unknown as Log)
  credentials.replace(new Map(mounted.map((value) => [sumOf(value), value])))
  const gateway = await new Harness({ credentials: (wanted) => wanted && credentials.credential(wanted) }).start()
  return { gateway, lines }
}

/** The record as the operator writes it. */
function given(change: Partial<BackendRecord>): BackendRecord {
  const backend = backendRecord({ credentialSum: sumOf(VALUE), formerCredentialSum: sumOf(FORMER), ...change })
  const [credentialProofOf, former] = [VALUE, FORMER].map((value) => credentialProof(value, 'uid-1', backend))
  return { ...backend, credentialProof: credentialProofOf, formerCredentialProof: former }
}

describe('a credential of a model server', () => {
  it('goes to the address for which the operator has given it, as does the one before until the newest is mounted', async () => {
    const server = await startBackend(json(200, OK))
    for (const value of [VALUE, FORMER]) {
      const { gateway } = await gatewayWith(value)
      for (const place of [{ url: `http://${server.address}` }, { endpoints: [server.address], service: 'llama.shop.svc:80' }]) {
        gateway.put(modelRecord({ backends: [given(place)] }))
        expect((await gateway.post(CHAT, HELLO)).status).toBe(200)
        expect(server.received.at(-1)?.headers.authorization).toBe(`Bearer ${value}`)
      }
    }
  })

  it.each<[string, string, (evil: string) => Partial<BackendRecord>]>([
    ['the url', VALUE, (evil) => ({ url: `http://${evil}` })],
    ['the url', FORMER, (evil) => ({ url: `http://${evil}` })],
    ['the endpoints', VALUE, (evil) => ({ url: null, service: 'llama.shop.svc:80', endpoints: [evil] })],
    ['the Service', VALUE, (evil) => ({ url: null, service: evil })],
  ])('reaches nobody by a record in which %s was changed in Redis', async (_what, value, forged) => {
    const [server, evil] = [await startBackend(json(200, OK)), await startBackend(json(200, OK))]
    const { gateway, lines } = await gatewayWith(value)
    gateway.put(modelRecord({ backends: [{ ...given({ url: `http://${server.address}` }), ...forged(evil.address) }] }))
    for (let call = 0; call < 6; call++) expect((await gateway.post(CHAT, HELLO)).status).toBe(503)
    expect(evil.received).toEqual([])
    expect(lines.filter((line) => line.includes('find out who writes in Redis'))).toHaveLength(1)
    expect(lines.join()).not.toContain('org-owned')
  })

  it('reaches nobody by a record of another model that names it', async () => {
    const evil = await startBackend(json(200, OK))
    const { gateway } = await gatewayWith(VALUE)
    const { credentialProof: proof } = given({ url: 'http://127.0.0.1:1' })
    const backend = backendRecord({ url: `http://${evil.address}`, credentialSum: sumOf(VALUE), credentialProof: proof })
    gateway.put(modelRecord({ uid: 'uid-of-the-attacker', backends: [backend] }))
    expect((await gateway.post(CHAT, HELLO)).status).toBe(503)
    expect(evil.received).toEqual([])
  })
})
