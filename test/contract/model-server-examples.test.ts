/** The examples of model servers. A reader applies a folder as it is, so the folder must hold every object that its ServedModel names. */
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { isOfKind } from '#api/kind.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import { validateManifest } from '#api/validate.ts'
import type { ServedModel } from '#api/served-model.ts'
import { filesBelow, read, ROOT } from '../support/documents.ts'

const metadata = z.strictObject({
  name: z.string(),
  namespace: z.literal('demo'),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
})
const service = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Service'),
  metadata,
  spec: z.strictObject({
    selector: z.record(z.string(), z.string()),
    ports: z.array(z.strictObject({ name: z.string(), port: z.int(), targetPort: z.string() })),
  }),
})
const deployment = z.object({
  apiVersion: z.literal('apps/v1'),
  kind: z.literal('Deployment'),
  metadata,
  spec: z.object({
    selector: z.strictObject({ matchLabels: z.record(z.string(), z.string()) }),
    template: z.object({
      metadata: z.strictObject({ labels: z.record(z.string(), z.string()) }),
      spec: z.object({
        containers: z.array(
          z.object({
            name: z.string(),
            image: z.string().regex(/:[\w.-]+$/, 'name a tag'),
            ports: z.array(z.strictObject({ name: z.string(), containerPort: z.int() })),
            readinessProbe: z.object({ httpGet: z.strictObject({ path: z.string(), port: z.string() }) }),
          }),
        ),
      }),
    }),
  }),
})
const secret = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Secret'),
  metadata,
  type: z.literal('Opaque'),
  stringData: z.record(z.string(), z.string()),
})

const folders = readdirSync(`${ROOT}/examples`, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !['standalone', 'quickstart', 'budget', 'litellm', 'stub-model'].includes(entry.name))
  .map(({ name }) => `examples/${name}`)

interface Found {
  readonly models: ServedModel[]
  readonly services: z.infer<typeof service>[]
  readonly deployments: z.infer<typeof deployment>[]
  readonly secrets: z.infer<typeof secret>[]
}

function objectsIn(folder: string): Found {
  const found: Found = { models: [], services: [], deployments: [], secrets: [] }
  const files = filesBelow(folder).filter((path) => path.endsWith('.yaml'))
  for (const document of files.flatMap((file) => parseAllDocuments(read(file)))) add(document.toJS() as { kind: string }, found)
  return found
}

function add(object: { readonly kind: string }, found: Found): void {
  if (object.kind === 'Service') found.services.push(service.parse(object))
  else if (object.kind === 'Deployment') found.deployments.push(deployment.parse(object))
  else if (object.kind === 'Secret') found.secrets.push(secret.parse(object))
  else found.models.push(modelOf(object))
}

function modelOf(object: unknown): ServedModel {
  const validated = validateManifest(object)
  if (!validated.ok || !isOfKind(servedModelKind, validated.object))
    throw new TypeError(`no valid ServedModel: ${JSON.stringify(validated)}`)
  return validated.object
}

test('there is an example for each kind of server that docs/model-servers.md names', () => {
  expect(folders.map((folder) => folder.replace(dirname(folder), '').slice(1)).toSorted()).toEqual([
    'hosted-openai',
    'llama-cpp',
    'ollama',
    'vllm',
  ])
  for (const folder of folders) expect(read('docs/model-servers.md')).toContain(`../${folder}/`)
})

describe.each(folders)('%s', (folder) => {
  const { models, services, deployments, secrets } = objectsIn(folder)

  test('has one ServedModel, in the namespace of its servers', () => {
    expect(models.map(({ metadata: { namespace } }) => namespace)).toEqual(['demo'])
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
