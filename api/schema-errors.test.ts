import { describe, expect, it } from 'vitest'
import { limitFields } from '#contract/records/limits-record.ts'
import { z } from 'zod'
import { API_KINDS } from './kinds.ts'
import { patternForm } from './schema-errors.ts'
import { validateManifest } from './validate.ts'

const KEY = { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata: { name: 'bot' }, spec: { models: ['*'] } }
const backend = { name: 'main', url: 'http://a.b' }
const MODEL = { ...KEY, kind: 'ServedModel', spec: { backends: [backend] } }
const key = (spec: object, more: object = {}): unknown => ({ ...KEY, spec: { ...KEY.spec, ...spec }, ...more })
const model = (spec: object): unknown => ({ ...MODEL, spec: { ...MODEL.spec, ...spec } })
const lines = (document: unknown): string[] => {
  const validated = validateManifest(document)
  return validated.ok ? [] : validated.errors.map(({ field, reason, remedy }) => `${field}: ${reason}; ${remedy}`)
}

describe('an error of a manifest names the field, the value, the reason and the remedy', () => {
  const FORM = 'use lower-case letters, digits, "-" and ".", with a letter or a digit at both ends'
  it.each<[string, unknown, string]>([
    [
      'a value in lower case',
      key({ state: 'suspended' }),
      'spec.state: "suspended" is not a known value; did you mean Suspended? Otherwise use Active, Suspended or Revoked',
    ],
    ['an unknown value', key({ state: 'off' }), 'spec.state: "off" is not a known value; use Active, Suspended or Revoked'],
    [
      'another version',
      { ...KEY, apiVersion: 'headgate.dev/v1' },
      'apiVersion: "headgate.dev/v1" is not a known value; use headgate.dev/v1alpha1',
    ],
    ['a list as text', key({ models: 'llama' }), 'spec.models: "llama" is text, not a list; write a list: ["llama"]'],
    [
      'an object as text',
      key({ secret: 'x' }),
      'spec.secret: is text, not an object; write an object with the fields name, retention, anthropicApiKey, template',
    ],
    ['a text as an object', key({ displayName: { a: 1 } }), 'spec.displayName: is an object, not text; write a text'],
    ['a text as a number', key({ displayName: 42 }), 'spec.displayName: 42 is a number, not text; write it in quotes: "42"'],
    ['a text as yes or no', key({ displayName: true }), 'spec.displayName: true is true or false, not text; write it in quotes: "true"'],
    ['a duration with a unit', key({ ttlSeconds: '1h' }), 'spec.ttlSeconds: "1h" is text, not a number; write the seconds: 3600'],
    ['a number in quotes', key({ ttlSeconds: '3600' }), 'spec.ttlSeconds: "3600" is text, not a number; remove the quotes: 3600'],
    ['a number as a word', key({ ttlSeconds: 'long' }), 'spec.ttlSeconds: "long" is text, not a number; write a whole number'],
    ['a fraction', key({ ttlSeconds: 90.5 }), 'spec.ttlSeconds: 90.5 is not a whole number; write a number without a fraction'],
    ['a number below the bound', key({ ttlSeconds: 59 }), 'spec.ttlSeconds: 59 is too small; use at least 60'],
    ['an empty list', key({ models: [] }), 'spec.models: is an empty list; name at least one model; ["*"] allows all models'],
    [
      'a list whose entries are commented out',
      key({ models: null }),
      'spec.models: has no value; name at least one model; ["*"] allows all models',
    ],
    ['a field that is missing', { ...KEY, spec: {} }, 'spec.models: is missing; name at least one model; ["*"] allows all models'],
    ['a list that is too long', key({ models: Array(257).fill('a') }), 'spec.models: has 257 entries; use at most 256'],
    ['a text that is too long', { ...KEY, metadata: { name: 'a'.repeat(254) } }, 'metadata.name: has 254 characters; use at most 253'],
    [
      '* in the middle',
      key({ models: ['a*b'] }),
      'spec.models[0]: "a*b" has * inside or at both ends; write * at one end only, as in "qwen-*" or "*-mini"',
    ],
    [
      'a name in upper case',
      { ...KEY, metadata: { name: 'Checkout_Bot' } },
      `metadata.name: "Checkout_Bot" is not a valid name; ${FORM}, for example "checkout-bot"`,
    ],
    [
      'a date without a time',
      key({ expirationTime: '2027-01-01' }),
      'spec.expirationTime: "2027-01-01" is a date without a time; write a time, such as "2027-01-01T00:00:00Z"',
    ],
    [
      'a time without a zone',
      key({ expirationTime: '2027-01-01T10:00:00' }),
      'spec.expirationTime: "2027-01-01T10:00:00" is a time without a time zone; append Z for UTC or an offset, as in "2027-01-01T10:00:00Z"',
    ],
    [
      'a day that does not exist',
      key({ expirationTime: '2027-02-30T00:00:00Z' }),
      'spec.expirationTime: "2027-02-30T00:00:00Z" is a time that does not exist; correct the day, the hour or the offset',
    ],
    ['a misspelt field', { ...KEY, spec: { modles: ['a'], models: ['a'] } }, 'spec.modles: there is no such field; did you mean models?'],
    [
      'a field in the wrong place',
      key({ requestsPerMinute: 5 }),
      'spec.requestsPerMinute: there is no such field; did you mean spec.limits.requestsPerMinute?',
    ],
    [
      'an unknown field',
      key({ limits: { daily: 1 } }),
      `spec.limits.daily: there is no such field; remove it; the fields here are ${Object.keys(limitFields).join(', ')}`,
    ],
    ['a name as a number', { ...KEY, metadata: { name: 123 } }, 'metadata.name: 123 is a number, not text; write it in quotes: "123"'],
    [
      'both service and url',
      model({ backends: [{ ...backend, service: { name: 'a', port: 1 } }] }),
      'spec.backends[0]: a backend has both service and url; remove one of the two',
    ],
    [
      'neither service nor url',
      model({ backends: [{ name: 'main' }] }),
      'spec.backends[0]: a backend has neither service nor url; set service to a Service in this namespace, or url to the base URL of a server',
    ],
    [
      'two time-outs',
      model({ timeouts: { totalSeconds: 599 } }),
      'spec.timeouts.firstByteSeconds: firstByteSeconds is above totalSeconds (600 and 599); lower firstByteSeconds, which is 600 where it is absent, or raise totalSeconds, which is 3600 where it is absent',
    ],
    [
      'another protocol',
      model({ backends: [{ name: 'main', url: 'ftp://a.b' }] }),
      'spec.backends[0].url: url is not of the form http(s)://host[:port][/path] ("ftp://a.b"); write http:// or https://, a host, and where needed a port and a path; no query and no fragment',
    ],
    [
      'an amount with a sign of a currency',
      key({ budgets: [{ name: 'a', unit: 'Currency', window: 'Day', amount: '$25' }] }),
      'spec.budgets[0].amount: amount is not a decimal number with at most 9 digits before the point and 6 after it ("$25"); write "25.00"',
    ],
    [
      'an amount with separators',
      key({ budgets: [{ name: 'a', unit: 'Currency', window: 'Day', amount: '1,000.50 EUR' }] }),
      'spec.budgets[0].amount: amount is not a decimal number with at most 9 digits before the point and 6 after it ("1,000.50 EUR"); write "1000.50"',
    ],
    [
      'a host and a port without a scheme',
      model({ backends: [{ name: 'main', url: 'localhost:11434' }] }),
      'spec.backends[0].url: url is not of the form http(s)://host[:port][/path] ("localhost:11434"); did you mean http://localhost:11434?',
    ],
    [
      'a host without a scheme',
      model({ backends: [{ name: 'main', url: 'api.example.com' }] }),
      'spec.backends[0].url: url is not of the form http(s)://host[:port][/path] ("api.example.com"); did you mean https://api.example.com?',
    ],
    [
      'the value of the only decision of an object',
      model({ allowedNamespaces: 'All' }),
      'spec.allowedNamespaces: is text, not an object; write { from: All }',
    ],
    [
      'a credential in a backend',
      model({ backends: [{ ...backend, apiKey: 'sk-live-key' }] }),
      'spec.backends[0].apiKey: there is no such field; put the credential into a Secret and name that Secret in authSecretRef; if this file held a real credential, replace the credential at its server',
    ],
    [
      'a key in the place of its hash',
      key({ source: { type: 'Hash', hash: { sha256: 'sk-live-key' } } }),
      'spec.source.hash.sha256: is the key itself; write its SHA-256, and replace the key: everybody who can read this ApiKey may have seen it',
    ],
    [
      'a hash that is none',
      key({ source: { type: 'Hash', hash: { sha256: 'hunter2' } } }),
      'spec.source.hash.sha256: is not a SHA-256; write 64 lower-case hexadecimal digits, as sha256sum prints them',
    ],
  ])('%s', (_, document, line) => {
    expect(lines(document)).toEqual([line])
  })

  it('has words for every pattern of the schemas, and shows no regular expression', () => {
    const patterns = API_KINDS.flatMap(({ spec }) => patternsOf(z.toJSONSchema(spec, { io: 'input' })))
    expect(patterns.length).toBeGreaterThan(5)
    for (const pattern of patterns) expect(patternForm(String(new RegExp(pattern)), 'x'), pattern).toBeDefined()
  })
})

describe('a value that may be a credential', () => {
  const SECRET = `sk-hg1${'a1B2'.repeat(14)}xyz`
  it.each<[string, unknown]>([
    ['as a model', key({ models: [`*${SECRET}*`] })],
    ['as text in place of a list', key({ models: SECRET })],
    ['as a state', key({ state: SECRET })],
    ['in place of a reference', model({ backends: [{ ...backend, authSecretRef: 'hush' }] })],
    ['as the name of a reference', model({ backends: [{ ...backend, authSecretRef: { name: 'Hush Hush' } }] })],
    ['as the password of a url', model({ backends: [{ name: 'main', url: 'http://me:hush@a.b' }] })],
    ['in the query of a url', model({ backends: [{ name: 'main', url: 'http://a.b?token=hush' }] })],
    ['as the name of a field', key({ [SECRET]: 1 })],
    ['as a name', { ...KEY, metadata: { name: 'Bearer hush' } }],
    ['in an annotation', key({ secret: { template: { annotations: { a: 42_424_242 } } } })],
  ])('is not shown: %s', (_, document) => {
    const shown = lines(document).join('\n')
    expect(shown).not.toBe('')
    expect(shown).not.toMatch(/hush|a1B2|424242/i)
  })
})

function patternsOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const own = 'pattern' in schema && typeof schema.pattern === 'string' && !('format' in schema) ? [schema.pattern] : []
  return [...own, ...Object.values(schema).flatMap(patternsOf)]
}
