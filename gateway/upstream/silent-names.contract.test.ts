import { expect, it } from 'vitest'
import { backendRecord, CHAT, Harness, HELLO, json, modelRecord, startBackend, until } from '../../test/support/upstream-harness.ts'
import type { SystemLookup } from './name-lookup.ts'

it('namespaces with silent name servers leave look-ups to the others: a call of another namespace is answered meanwhile', async () => {
  const silent: string[] = []
  const systemLookup: SystemLookup = (name, _options, done) => {
    if (name.startsWith('silent')) silent.push(name)
    else setImmediate(done, null, [{ address: '127.0.0.1', family: 4 }])
  }
  const backend = await startBackend(json(200, { model: 'llama' }))
  const gateway = await new Harness({ systemLookup, threads: 16 }).start()
  const namespaces = ['a', 'b', 'c']
  for (const namespace of namespaces) {
    const backends = Array.from({ length: 16 }, (_, number) =>
      backendRecord({ name: `b${number}`, endpoints: [], url: `http://silent-${number}.${namespace}.example` }),
    )
    gateway.put(modelRecord({ uid: namespace, namespace, servedName: namespace, backends }))
    for (let call = 0; call < 16; call++) void gateway.post(CHAT, { ...HELLO, model: namespace }).catch(() => undefined) // never answered
  }
  await until(() => silent.length >= namespaces.length)
  const url = `http://good.example:${backend.address.split(':')[1]}`
  gateway.put(modelRecord({ uid: 'good', servedName: 'good', backends: [backendRecord({ endpoints: [], url })] }))
  expect((await gateway.post(CHAT, { ...HELLO, model: 'good' })).status).toBe(200)
  expect(silent).toHaveLength(namespaces.length)
})
