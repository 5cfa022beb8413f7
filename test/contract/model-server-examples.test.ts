/** The examples of model servers. A reader applies a folder as it is, so the folder must hold every object that its ServedModel names. */
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { isOfKind } from '#api/kind.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import { validateManifest } from '#api/validate.ts'
import type { ServedModel } from '#api/served-model.ts'
import { filesBelow, read, ROOT } from '../support/documents.ts'

/** The fields of a Service, Deployment or Secret that the tests read; `examples-server.test.ts` has the API server check the whole objects. */
interface Example {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels?: Labels; readonly annotations?: Labels }
  readonly spec: {
    readonly selector: Labels & { readonly matchLabels?: Labels }
    readonly ports: ReadonlyArray<{ readonly port: number; readonly targetPort: string }>
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: { readonly containers: readonly Container[] } }
  }
  readonly stringData: Labels
}
type Labels = Readonly<Record<string, string>>
interface Container {
  readonly image: string
  readonly ports: ReadonlyArray<{ readonly name: string }>
  readonly readinessProbe: { readonly httpGet: { readonly port: string } }
}

const OTHERS = [
  'account-rights',
  'accounts',
  'dashboard',
  'standalone',
  'quickstart',
  'budget',
  'litellm',
  'stub-model',
  'stub-identity',
  'stub-stripe',
]
const folders = readdirSync(`${ROOT}/examples`, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !OTHERS.includes(entry.name))
  .map(({ name }) => `examples/${name}`)

function objectsIn(folder: string): Example[] {
  const files = filesBelow(folder).filter((path) => path.endsWith('.yaml'))
  return files.flatMap((file) => parseAllDocuments(read(file))).map((document) => document.toJS() as Example)
}

function modelOf(object: unknown): ServedModel {
  const validated = validateManifest(object)
  if (!validated.ok || !isOfKind(servedModelKind, validated.object))
    throw new TypeError(`no valid ServedModel: ${JSON.stringify(validated)}`)
  return validated.object
}

test('there is an example for each kind of server that docs/model-servers.md names', () => {
  expect(folders.map((folder) => folder.replace(dirname(folder), '').slice(1)).toSorted()).toEqual([
    'azure-openai',
    'hosted-anthropic',
    'hosted-openai',
    'llama-cpp',
    'ollama',
    'vllm',
  ])
  for (const folder of folders) expect(read('docs/model-servers.md')).toContain(`../${folder}/`)
})

describe.each(folders)('%s', (folder) => {
  const objects = objectsIn(folder)
  const [services, deployments, secrets] = ['Service', 'Deployment', 'Secret'].map((kind) =>
    objects.filter((one) => one.kind === kind),
  ) as [Example[], Example[], Example[]]
  const models = objects.filter((one) => ![...services, ...deployments, ...secrets].includes(one)).map(modelOf)

  test('has one ServedModel, in the namespace of its servers', () => {
    expect(models).toHaveLength(1)
    expect(new Set(objects.map(({ metadata }) => metadata.namespace))).toEqual(new Set(['demo']))
  })

  test('has each Service that a backend names, with the port', () => {
    const offered = services.flatMap(({ metadata: { name }, spec }) => spec.ports.map(({ port }) => `${name}:${port}`))
    const named = models.flatMap(({ spec }) => spec.backends.flatMap((backend) => backend.service ?? []))
    expect(named.map(({ name, port }) => `${name}:${port}`)).toEqual(offered)
  })

  test('each Service selects an existing Deployment, and leads to a port of its container that a readiness probe checks', () => {
    expect(services).toHaveLength(deployments.length)
    for (const { spec } of services) {
      const [selected] = deployments.filter(({ spec: { template } }) =>
        Object.entries(spec.selector).every(([key, value]) => template.metadata.labels[key] === value),
      )
      expect(selected?.spec.selector.matchLabels).toEqual(spec.selector)
      const [container] = selected?.spec.template.spec.containers ?? []
      expect(container?.image, 'names a tag').toMatch(/:[\w.-]+$/)
      const ports = container?.ports.map(({ name }) => name)
      expect(ports).toEqual(spec.ports.map(({ targetPort }) => targetPort))
      expect(ports).toContain(container?.readinessProbe.httpGet.port)
    }
  })

  test('each credential has the label, lists the host of its backend, and holds no real value', () => {
    for (const backend of models.flatMap(({ spec }) => spec.backends)) {
      const { authSecretRef, url } = backend
      if (authSecretRef === undefined) continue
      const held = secrets.find(({ metadata: { name } }) => name === authSecretRef.name)
      expect(held?.metadata.labels).toEqual({ 'headgate.dev/upstream-auth': 'true' })
      expect(held?.metadata.annotations?.['headgate.dev/upstream-hosts']?.split(',')).toContain(new URL(url ?? '').host)
      expect(held?.stringData[authSecretRef.key]).toMatch(/^replace-/)
    }
  })
})
