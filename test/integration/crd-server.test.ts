import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { API_KINDS } from '#api/kinds.ts'
import { API_GROUP, API_VERSION } from '#api/metadata.ts'
import { validateManifest } from '#api/validate.ts'
import type { Manifest, ManifestRow } from '../contract/manifest-row.ts'
import { MANIFESTS } from '../contract/manifests.ts'
import type { KubeAdmin } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'

interface ApiAnswer {
  readonly status: number
  readonly body: unknown
}

const lab = openLab()
const call = async (...request: Parameters<KubeAdmin['answer']>): Promise<ApiAnswer> => {
  const { status, text } = await lab.plane.admin.answer(...request)
  return { status, body: JSON.parse(text) }
}
const namespace = `crd-${process.pid}`
const ruleTexts = new Map(
  API_KINDS.flatMap(({ rules }) => rules.flatMap(({ path, rules: here }) => here.map((rule) => [`${path}#${rule.id}`, rule]))),
)

const answerBody = z.object({
  message: z.string().default(''),
  details: z
    .object({ causes: z.array(z.object({ field: z.string().default(''), message: z.string().default('') })).default([]) })
    .default({ causes: [] }),
  spec: z.unknown().optional(),
  metadata: z.looseObject({ resourceVersion: z.string().optional() }).optional(),
})

beforeAll(() => lab.plane.namespace(namespace))

afterAll(() => lab.plane.admin.remove(`/api/v1/namespaces/${namespace}`))

describe('the API server', () => {
  test.each(MANIFESTS.filter((row) => row.refused === undefined))('accepts: $name', async (row) => {
    const { status, body } = await validate(row)
    expect([status, answerBody.parse(body).message]).toEqual([row.previous ? 200 : 201, ''])
    const validated = validateManifest(row.manifest)
    expect(answerBody.parse(body).spec, 'both fill in the same defaults').toEqual(validated.ok ? validated.object.spec : validated.errors)
  })

  test.each(MANIFESTS.filter((row) => row.refused !== undefined))('refuses: $name', async (row) => {
    const answer = await validate(row)
    const rule = row.rule === undefined ? undefined : ruleTexts.get(row.rule)
    const { refused, messages } = complaints(answer)
    expect(refused, messages.join('\n')).toContain(row.refused)
    expect(messages.join('\n')).toContain(rule ? rule.reason : row.refused)
    if (rule?.celValues !== undefined)
      expect(messages.join('\n'), 'both show the same values').toContain(`${reasonOf(row)}: ${rule.remedy}`)
  })
})

test('keys are found by state and by public id, models by served name', async () => {
  const { metadata } = await create({ kind: 'ApiKey', name: 'found', spec: { state: 'Suspended', models: ['*'] } })
  const status = { observedGeneration: 1, keyID: '4fT9abcdef' }
  await call('PUT', `${collection('ApiKey')}/found/status`, {
    ...object('ApiKey', 'found', { state: 'Suspended', models: ['*'] }),
    metadata,
    status,
  })
  await create({ kind: 'ApiKey', name: 'other', spec: { models: ['*'] } })
  await create({ kind: 'ServedModel', name: 'llama', spec: { servedName: 'llama-3', backends: [{ name: 'a', url: 'http://10.0.0.5' }] } })
  expect(await select('ApiKey', 'spec.state=Suspended')).toEqual(['found'])
  expect(await select('ApiKey', 'status.keyID=4fT9abcdef')).toEqual(['found'])
  expect(await select('ServedModel', 'spec.servedName=llama-3')).toEqual(['llama'])
  for (const [kind, name] of [
    ['ApiKey', 'found'],
    ['ApiKey', 'other'],
    ['ServedModel', 'llama'],
  ] as const)
    await remove(kind, name)
})

test('every field has a text for kubectl explain', async () => {
  const schemas = await publishedSchemas()
  for (const { resource } of API_KINDS) {
    const name = `${API_GROUP.split('.').toReversed().join('.')}.${API_VERSION}.${resource.kind}`
    expect(undescribed(schemas[name], resource.kind)).toEqual([])
  }
})

function reasonOf(row: ManifestRow): string {
  const validated = validateManifest(row.manifest)
  return validated.ok ? '' : (validated.errors[0]?.reason ?? '')
}

/** The server publishes the schemas of a new kind a moment after it serves the kind. */
async function publishedSchemas(): Promise<Readonly<Record<string, unknown>>> {
  const page = z.object({ components: z.object({ schemas: z.record(z.string(), z.unknown()) }) })
  const read = async () => page.safeParse((await call('GET', `/openapi/v3/apis/${API_GROUP}/${API_VERSION}`)).body).data?.components.schemas
  const areAll = (schemas: object) =>
    API_KINDS.every(({ resource }) => Object.keys(schemas).some((name) => name.endsWith(`.${resource.kind}`)))
  return await vi.waitUntil(async () => [await read()].find((schemas) => schemas !== undefined && areAll(schemas)), {
    timeout: 90_000,
    interval: 100,
  })
}

/** The fields that a refusal names, and their messages. Unknown fields are refused earlier (400), and only the message names them. */
function complaints({ status, body }: ApiAnswer): { refused: string[]; messages: string[] } {
  const { message, details } = answerBody.parse(body)
  if (status === 400)
    return { refused: [...message.matchAll(/unknown field "([^"]+)"/g)].map((match) => match[1] ?? ''), messages: [message] }
  return status === 422
    ? { refused: details.causes.map((cause) => cause.field), messages: [message] }
    : { refused: [], messages: [`${status} ${message}`] }
}

async function validate(row: ManifestRow): Promise<ApiAnswer> {
  const path = collection(row.manifest.kind)
  const query = '?dryRun=All&fieldValidation=Strict'
  if (!row.previous) return await call('POST', path + query, inNamespace(row.manifest))
  const before = await call('POST', `${path}?fieldValidation=Strict`, inNamespace(row.previous))
  expect(before.status, JSON.stringify(before.body)).toBe(201)
  const { name } = row.previous.metadata
  const { resourceVersion } = answerBody.parse(before.body).metadata ?? {}
  const changed = inNamespace(row.manifest, { resourceVersion })
  const answer = await call('PUT', `${path}/${String(name)}${query}`, changed)
  await call('DELETE', `${path}/${String(name)}`)
  return answer
}

function inNamespace(manifest: Manifest, more: Readonly<Record<string, unknown>> = {}): unknown {
  const place = isNamespaced(manifest.kind) ? { namespace } : {}
  return { ...manifest, metadata: { ...manifest.metadata, ...more, ...place } }
}

function collection(kind: string): string {
  const plural = API_KINDS.find(({ resource }) => resource.kind === kind)?.resource.plural
  const place = isNamespaced(kind) ? `/namespaces/${namespace}` : ''
  return `/apis/${API_GROUP}/${API_VERSION}${place}/${plural}`
}

function isNamespaced(kind: string): boolean {
  return API_KINDS.find(({ resource }) => resource.kind === kind)?.resource.namespaced === true
}

function object(kind: string, name: string, spec: unknown) {
  return { apiVersion: `${API_GROUP}/${API_VERSION}`, kind, metadata: { name, namespace }, spec }
}

async function create(wanted: { kind: string; name: string; spec: unknown }) {
  const { status, body } = await call('POST', collection(wanted.kind), object(wanted.kind, wanted.name, wanted.spec))
  expect(status, JSON.stringify(body)).toBe(201)
  return answerBody.parse(body)
}

async function remove(kind: string, name: string): Promise<void> {
  await call('DELETE', `${collection(kind)}/${name}`)
}

async function select(kind: string, fieldSelector: string): Promise<string[]> {
  const { body } = await call('GET', `${collection(kind)}?fieldSelector=${encodeURIComponent(fieldSelector)}`)
  const list = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) }).parse(body)
  return list.items.map((item) => item.metadata.name)
}

function undescribed(schema: unknown, path: string): string[] {
  const node = z
    .object({
      properties: z.record(z.string(), z.unknown()).default({}),
      items: z.unknown().optional(),
      description: z.string().default(''),
    })
    .parse(schema)
  const below = Object.entries(node.properties).flatMap(([name, child]) => undescribed(child, `${path}.${name}`))
  const inItems = node.items === undefined ? [] : undescribed(node.items, `${path}[]`).filter((one) => one !== `${path}[]`)
  return [...(node.description === '' ? [path] : []), ...below, ...inItems]
}
