/** Gateway pods on one Redis, each with another form of the settings: single variables, one URL, and TLS with a private authority. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import type { Lab } from './lab.ts'
import { LimitedAnswers } from './limited-answers.ts'
import { Program } from './program.ts'
import type { RedisPart } from './redis-part.ts'
import { TEST_CA, TEST_SERVER_CERT, TEST_SERVER_KEY } from './tls-fixture.ts'
import { waitFor } from './wait-for.ts'

/** Forms of the settings; one pod each. */
export const STORE_FORMS = ['user and password beside the URL', 'user and password in the URL', 'TLS with a private CA'] as const
export type StoreForm = (typeof STORE_FORMS)[number]

/** The certificate is valid for this address. */
const TLS_HOST = '127.0.0.1'

export class StoreForms {
  readonly limits: LimitedAnswers
  readonly #pods: Readonly<Record<StoreForm, Program>>
  readonly #tls: TlsFiles
  readonly #tlsPort: number

  private constructor(limits: LimitedAnswers, pods: Readonly<Record<StoreForm, Program>>, tls: { files: TlsFiles; port: number }) {
    this.limits = limits
    this.#pods = pods
    this.#tls = tls.files
    this.#tlsPort = tls.port
  }

  static async open(lab: Lab): Promise<StoreForms> {
    const limits = await LimitedAnswers.open(lab, 'forms')
    const { redis } = limits
    const { REDIS_USERNAME: user, REDIS_PASSWORD: password } = redis.envFor('gateway')
    const [files, port] = [writeTlsFiles(lab.folder), await freePort()]
    const userInfo = `${user}:${encodeURIComponent(password)}`
    const inURL = await pod(lab, 'forms-url', { REDIS_URL: `redis://${userInfo}@${redis.ip}:${redis.port}/0` })
    const byTLS = await pod(lab, 'forms-tls', { REDIS_URL: `rediss://${userInfo}@${TLS_HOST}:${port}`, REDIS_CA_FILE: files.ca })
    const pods = {
      'user and password beside the URL': limits.gateway,
      'user and password in the URL': inURL,
      'TLS with a private CA': byTLS,
    }
    const forms = new StoreForms(limits, pods, { files, port })
    await forms.#listenForTLS()
    await Promise.all([inURL.start(), byTLS.start()])
    return forms
  }

  pod(form: StoreForm): Program {
    return this.#pods[form]
  }

  get pids(): number[] {
    return this.#all.map(({ process }) => process.pid)
  }

  /** Until every pod knows all keys, and that it shares the limits with the other two. */
  async ready(): Promise<void> {
    await waitFor('every pod to know the keys and the other pods', async () => {
      const revisions = await this.#metrics('headgate_projection_revision')
      const live = await this.#metrics('headgate_limit_live_pods')
      return new Set(revisions).size === 1 && live.every((pods) => pods === this.#all.length)
    })
  }

  /** Starts the stopped Redis, empty, with the first writes of the operator. */
  async restartRedis(): Promise<void> {
    await this.limits.redis.start()
    await this.#listenForTLS()
    await this.limits.rebuild()
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((program) => program.stop()))
    await this.limits.close()
  }

  get #all(): Program[] {
    return STORE_FORMS.map((form) => this.#pods[form])
  }

  #metrics(name: string): Promise<Array<number | undefined>> {
    return Promise.all(this.#all.map((program) => program.metric(name)))
  }

  async #listenForTLS(): Promise<void> {
    const { cert, key } = this.#tls
    const { redis } = this.limits
    await configure(redis, { bind: `${redis.ip} ${TLS_HOST}` })
    await configure(redis, { 'tls-auth-clients': 'no', 'tls-cert-file': cert, 'tls-key-file': key })
    await configure(redis, { 'tls-port': String(this.#tlsPort) })
  }
}

interface TlsFiles {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

function writeTlsFiles(folder: string): TlsFiles {
  const written = (name: string, pem: string): string => {
    const file = join(folder, `redis-tls-${name}.pem`)
    writeFileSync(file, pem, { mode: 0o600 })
    return file
  }
  return { ca: written('ca', TEST_CA), cert: written('cert', TEST_SERVER_CERT), key: written('key', TEST_SERVER_KEY) }
}

function pod(lab: Lab, name: string, settings: Readonly<Record<string, string>>): Promise<Program> {
  const env = { ...settings, DEREGISTRATION_SECONDS: '0', ACCESS_LOG: 'errors' }
  return Program.prepare({ program: 'gateway', pod: name, ip: lab.address.ip, folder: lab.folder, env })
}

async function configure(redis: RedisPart, settings: Readonly<Record<string, string>>): Promise<void> {
  await redis.admin.call('CONFIG', 'SET', ...Object.entries(settings).flat())
}
