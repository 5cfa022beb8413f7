/** The lines of `make run` about objects that do not work, and about their recovery. */
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startStubModel } from '../../examples/stub-model/stub-model.ts'
import { freePort } from '../support/free-port.ts'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples')
const HEAD = 'apiVersion: headgate.dev/v1alpha1\nkind:'
const STUB = 'http://127.0.0.1:8089'
const modelManifest = (name: string, backend: string, more = ''): string =>
  `${HEAD} ServedModel\nmetadata: { name: ${name}, namespace: demo }\nspec:\n  backends: [{ name: main, ${backend} }]\n${more}`
const keyManifest = (name: string, spec: string): string =>
  `${HEAD} ApiKey\nmetadata: { name: ${name}, namespace: demo }\nspec:\n  ${spec.replaceAll('; ', '\n  ')}\n`

describe('what make run says', () => {
  let cwd = ''
  const running: StandaloneProcess[] = []

  beforeEach(() => {
    cwd = temporaryFolder()
    cpSync(join(EXAMPLES, 'standalone'), join(cwd, 'manifests'), { recursive: true })
  })
  afterEach(async () => {
    for (const program of running.splice(0)) await program.stop('SIGKILL')
  })

  const start = (env: Record<string, string> = {}): StandaloneProcess => {
    const program = new StandaloneProcess(cwd, { LOG_FORMAT: 'text', ...env })
    running.push(program)
    return program
  }
  const write = (name: string, text: string): void => {
    writeFileSync(join(cwd, 'next'), text)
    renameSync(join(cwd, 'next'), join(cwd, 'manifests', name))
  }
  const edit = (name: string, change: (text: string) => string): void =>
    write(name, change(readFileSync(join(cwd, 'manifests', name), 'utf8')))

  it('names each manifest that is valid and does not work, with the reason and the remedy, and prints no command for it', async () => {
    write(
      'wrong.yaml',
      [
        modelManifest('service', 'service: { name: llama, port: 8080 }'),
        modelManifest('metadata', 'url: "http://169.254.169.254"'),
        modelManifest('dead', 'url: "http://127.0.0.1:1"'),
        modelManifest('copy1', `url: "${STUB}"`, '  servedName: copy\n'),
        modelManifest('copy2', `url: "${STUB}"`, '  servedName: copy\n'),
        modelManifest('secret', `url: "${STUB}", authSecretRef: { name: nope }`),
        keyManifest('one', "models: ['*']; secret: { name: shared }"),
        keyManifest('two', "models: ['*']; secret: { name: shared }"),
        keyManifest('past', "models: ['*']; expirationTime: '2025-01-01T00:00:00Z'"),
        keyManifest('off', "models: ['*']; state: Suspended"),
        keyManifest('typo', 'models: [nonexistent-model]'),
        keyManifest('no-service', 'models: [service]'),
        keyManifest('no-server', 'models: [dead]'),
      ].join('---\n'),
    )
    rmSync(join(cwd, 'manifests/limited-key.yaml'))
    const program = start()
    await program.printed(/first-key is ready:[^]*curl/)
    const { output } = program
    for (const line of [
      /WARN {2}ServedModel demo\/service: not ready \(ServiceNotFound\): backends\[main\]\.service: there are no Services without a cluster\. Write `url: .*` instead of `service`\.$/m,
      /WARN {2}ServedModel demo\/metadata: not ready \(AddressRefused\): .*link-local address\. Write the address of a model server\.$/m,
      /WARN {2}ServedModel demo\/dead: no server answers \(NotAnswering\): http:\/\/127\.0\.0\.1:1 \(backends\[main\]\.url\): nothing listens there .*Start the model server/,
      /WARN {2}ServedModel demo\/copy\d: not ready \(NameConflict\): "copy" belongs to ServedModel demo\/.*Choose another name/,
      /WARN {2}ServedModel demo\/secret: not ready \(SecretNotFound\): .*Secret nope does not exist.*Add the Secret to the manifests, with the label/,
      /WARN {2}ApiKey demo\/(one|two): not ready \(SecretConflict\): Secret shared holds the key of ApiKey (one|two), the only copy of its value.*another secret\.name/,
      /WARN {2}ApiKey demo\/past: not ready \(Expired\): The key expired at 2025-01-01T00:00:00Z\. Set a later time/,
      /\d {2}ApiKey demo\/off: not ready \(Suspended\): spec\.state is Suspended\. Set it to Active/,
      /WARN {2}ApiKey demo\/typo: no model that this key may call yet \(NoModel\): it allows nonexistent-model, and no ServedModel has that name\./,
      /WARN {2}ApiKey demo\/no-service: no model that this key may call yet \(NoModel\): ServedModel demo\/service is not usable \(ServiceNotFound\)/,
      /WARN {2}ApiKey demo\/no-server: no model that this key may call yet \(NoModel\): ServedModel demo\/dead is not usable \(NotAnswering\)/,
      /\(models: copy, llama\)\.\nNot usable: ServedModel demo\/copy\d \(NameConflict\), demo\/dead \(NotAnswering\), .*demo\/metadata \(AddressRefused\).*demo\/service \(ServiceNotFound\)/,
    ])
      expect(output).toMatch(line)
    expect(output.match(/ServedModel demo\/service: /g), 'once; that it is applied is in the line of many').toHaveLength(1)
    expect(output.match(/^ {2}curl /gm), 'first-key, and one of the two that want one Secret').toHaveLength(2)
  })

  it('says that no model of the examples for a cluster can be called, and why', async () => {
    rmSync(join(cwd, 'manifests'), { recursive: true })
    cpSync(join(EXAMPLES, 'quickstart'), join(cwd, 'manifests'), { recursive: true })
    const program = start()
    await program.printed(/No key can be used yet/)
    expect(program.output).toMatch(/there are no Services without a cluster/)
    expect(program.output).toMatch(
      /\(no model can be called yet\)\.\nNot usable: ServedModel demo\/llama \(ServiceNotFound\)\.\nNo key can be used yet/,
    )
    expect(program.output).not.toMatch(/is ready:|curl/)
    edit('model.yaml', (text) => text.replace('service: { name: llama, port: 8080 }', `url: ${STUB}`))
    await program.printed(/ServedModel demo\/llama: ready now \(it was ServiceNotFound\)/)
    await program.printed(/first-key is ready:\n\n {2}curl/)
    expect(await program.chat(program.credential('demo/first-key'), 'llama')).toBe(200)
  })

  it('says suspension, expiry, recovery and revocation in one line each, and the command of a key once', async () => {
    const program = start()
    await program.printed(/first-key is ready:/)
    edit('apikey.yaml', (text) => text.replace('  models: [llama]', '  models: [llama]\n  state: Suspended'))
    await program.printed(/\d {2}ApiKey demo\/first-key: not ready \(Suspended\)/)
    edit('apikey.yaml', (text) => text.replace('  state: Suspended\n', ''))
    await program.printed(/ApiKey demo\/first-key: ready now \(it was Suspended\)/)
    const soon = new Date(Date.now() + 1_000).toISOString().replace(/\.\d+/, '')
    edit('apikey.yaml', (text) => text.replace('  models: [llama]', `  models: [llama]\n  expirationTime: '${soon}'`))
    await program.printed(/WARN {2}ApiKey demo\/first-key: not ready \(Expired\)/)
    edit('limited-key.yaml', (text) => text.replace('  models: [llama]', '  models: [llama]\n  state: Revoked'))
    await program.printed(/\d {2}ApiKey demo\/limited-key: not ready \(Revoked\): The key is revoked for good/)
    rmSync(join(cwd, 'manifests/apikey.yaml'))
    await program.printed(/ApiKey demo\/first-key: deleted: the key is revoked/)
    expect(program.output.match(/first-key is ready:/g)).toHaveLength(1)
  })

  it('reports that a model server does not answer, and later that it answers, without any request', async () => {
    const port = await freePort()
    edit('model.yaml', (text) => text.replace(STUB, `http://127.0.0.1:${port}`))
    const program = start()
    await program.printed(/no server answers \(NotAnswering\)/)
    await program.printed(/No key can be used yet/)
    const server = await startStubModel({ port })
    await program.printed(/ServedModel demo\/llama: its server answers now/)
    await program.printed(/first-key is ready:\n\n {2}curl/)
    await server.close()
  })

  it('does not call a key ready that was revoked or lost its Secret while the program was stopped', async () => {
    const first = start()
    await first.printed(/limited-key is ready:/)
    expect(await first.stop()).toBe(0)
    rmSync(join(cwd, 'manifests/limited-key.yaml'))
    rmSync(join(cwd, '.headgate/secrets/demo/first-key'), { recursive: true })
    const second = start()
    await second.printed(/No key can be used yet|is ready:/)
    await second.printed(/ApiKey demo\/limited-key: deleted: the key is revoked/)
    expect(second.output).toMatch(
      /WARN {2}ApiKey demo\/first-key: ready, but SecretIssued is False \(SecretMissing\): .*create a new ApiKey/,
    )
    expect(second.output).not.toMatch(/is ready:|curl/)
  })

  it('says that a budget is used up, as the status does, and later that the budget has room again', async () => {
    const program = start()
    await program.printed(/limited-key is ready:/)
    expect(await program.chat(program.credential('demo/limited-key'), 'llama')).toBe(200)
    edit('limited-key.yaml', (text) => text.replace("'1000000'", "'1'"))
    await program.printed(
      /WARN {2}ApiKey demo\/limited-key: not ready \(BudgetExhausted\): Budget day is used up: requests answer 402 .*Raise the amount/,
    )
    edit('limited-key.yaml', (text) => text.replace("'1'", "'1000000'"))
    await program.printed(/ApiKey demo\/limited-key: ready now \(it was BudgetExhausted\)/)
  })

  it('logs each request with the name of the key, and each request without a route with its method and path', async () => {
    const program = start()
    await program.printed(/first-key is ready:/)
    const base = (await program.baseURL()).replace(/\/v1$/, '')
    await program.chat(program.credential('demo/first-key'), 'llama')
    await program.printed(/200 {2}POST \/v1\/chat\/completions {2}demo\/first-key {2}llama -> main {2}\d+ ms$/m)
    await fetch(`${base}/chat/completions?key=sk-${'x'.repeat(30)}`, { method: 'POST' })
    await program.printed(/404 {2}POST \/chat\/completions {2}\d+ ms {2}unknownPath$/m)
    await fetch(`${base}/sk-${'x'.repeat(30)}`)
    await program.printed(/404 {2}GET \/sk-\[hidden\] /)
    expect(program.output).not.toContain('xxxx')
  })

  it('sums up what happens to many objects at once', async () => {
    const program = start()
    await program.printed(/first-key is ready:/)
    write('many.yaml', Array.from({ length: 40 }, (_, index) => keyManifest(`k${index}`, 'models: [nope]')).join('---\n'))
    await program.printed(/WARN {2}\d\d+ ApiKeys: no model that this key may call yet .* and \d+ more\): it allows nope/)
    rmSync(join(cwd, 'manifests/many.yaml'))
    await program.printed(/\d\d+ ApiKeys: deleted: the keys are revoked, and their Secrets are removed \(.* and \d+ more\)/)
    const lines = program.output.split('\n').filter((line) => /ApiKey/.test(line))
    expect(lines.length).toBeLessThan(20)
  })
})
