import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { settingRows } from '../gateway/process/env.ts'
import { loadConfig, standaloneSettings } from './config.ts'

describe('the settings of make run', () => {
  it('have a default each', () => {
    expect(loadConfig({})).toEqual({
      port: 8080,
      manifests: 'examples/standalone',
      redisURL: undefined,
      modelURL: undefined,
      accessLog: 'sample',
      logLevel: 'info',
    })
  })

  it('take a model server with or without /v1 and a folder with or without a slash', () => {
    const config = loadConfig({ PORT: '0', MANIFESTS: 'my/models/', MODEL_URL: 'http://127.0.0.1:9000/v1/' })
    expect(config).toMatchObject({ port: 0, manifests: 'my/models', modelURL: 'http://127.0.0.1:9000' })
  })

  it('name every fault at once, with its remedy, and never show the Redis URL', () => {
    const faulty = (): unknown => loadConfig({ PORT: '99999', REDIS_URL: 'http://:hush@x', MODEL_URL: 'nowhere', ACCESS_LOG: 'some' })
    expect(faulty).toThrow(
      /PORT: .*set it to a free port; REDIS_URL: .*; MODEL_URL: .*set it to http.*; ACCESS_LOG: .*set it to errors, sample or all/,
    )
    expect(faulty).not.toThrow('hush')
  })

  it('stand in the README, each with its default', () => {
    const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8').replace(/ +/g, ' ')
    for (const { name, fallback, about } of settingRows(standaloneSettings)) {
      expect(readme).toContain(`| \`${name}\` | ${fallback === undefined ? '' : `\`${fallback}\` `}| ${about} |`)
    }
  })
})
