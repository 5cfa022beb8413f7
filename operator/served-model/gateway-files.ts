/**
 * The two Secrets beside the keyring that gateway pods mount: the model records of a cold start, and the upstream tokens (which never
 * enter Redis). Each is one object, written as a whole when it changes.
 */
import type { Cancel, Clock } from '../../gateway/shared/clock.ts'
import { encodeModelsFile, MODELS_SECRET, RECORDS_KEY, UPSTREAM_SECRET } from '../../gateway/shared/keyring-line.ts'
import { isKubeError, type KubePort } from '../kube/port.ts'
import { type Secret, secrets } from '../kube/resources.ts'

/** Changes that come together share a write, ms. */
const LINGER_MS = 50
const RETRY_MS = 2_000

/** What the files need from their surroundings. */
export interface GatewayFilesDeps {
  readonly kube: KubePort
  /** The operator's own namespace. */
  readonly namespace: string
  readonly clock: Clock
  readonly assertLeading: () => void
  readonly warn: (message: string) => void
}

/** Keeps both Secrets equal to what was last told. */
export class GatewayFiles {
  readonly #deps: GatewayFilesDeps
  readonly #records = new Map<string, string>()
  readonly #tokens = new Map<string, { readonly file: string; readonly token: string }[]>()
  #cancel: Cancel = () => undefined
  #last: Promise<void> = Promise.resolve()
  #started = false

  constructor(deps: GatewayFilesDeps) {
    this.#deps = deps
  }

  /** From now on changes are written: every model has been told by then, so that a restart never writes half a file. */
  start(): void {
    this.#started = true
    this.#schedule(0)
  }

  stop(): void {
    this.#cancel()
    this.#started = false
  }

  /** @param text encoded ModelRecord without endpoints; undefined when the model is gone */
  setRecord(uid: string, text: string | undefined): void {
    if (this.#records.get(uid) === text) return
    if (text === undefined) this.#records.delete(uid)
    else this.#records.set(uid, text)
    this.#schedule(LINGER_MS)
  }

  /** The tokens of one model, by file name. */
  setTokens(uid: string, tokens: ReadonlyArray<{ readonly file: string; readonly token: string }>): void {
    if (JSON.stringify(this.#tokens.get(uid) ?? []) === JSON.stringify(tokens)) return
    if (tokens.length === 0) this.#tokens.delete(uid)
    else this.#tokens.set(uid, [...tokens])
    this.#schedule(LINGER_MS)
  }

  #schedule(ms: number): void {
    if (!this.#started) return
    this.#cancel()
    this.#cancel = this.#deps.clock.after(ms, () => {
      this.#last = this.#last.then(() => this.#write())
    })
  }

  async #write(): Promise<void> {
    try {
      const tokens = [...this.#tokens.values()].flat().map(({ file, token }) => [file, Buffer.from(token).toString('base64')] as const)
      const records = [...this.#records].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text)
      await this.#writeSecret(UPSTREAM_SECRET, Object.fromEntries(tokens.sort(([a], [b]) => (a < b ? -1 : 1))))
      await this.#writeSecret(MODELS_SECRET, { [RECORDS_KEY]: encodeModelsFile(0, records).toString('base64') })
    } catch (error) {
      this.#deps.warn(
        `the files of the gateways could not be written (${error instanceof Error ? error.message : String(error)}); tried again`,
      )
      this.#schedule(RETRY_MS)
    }
  }

  async #writeSecret(name: string, data: Record<string, string>): Promise<void> {
    const { kube, namespace } = this.#deps
    this.#deps.assertLeading()
    const present = await kube.get(secrets, { namespace, name })
    if (present && JSON.stringify(sorted(present.data ?? {})) === JSON.stringify(sorted(data))) return
    const secret: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name,
        namespace,
        labels: { 'app.kubernetes.io/managed-by': 'headgate-operator' },
        ...(present?.metadata.resourceVersion ? { resourceVersion: present.metadata.resourceVersion } : {}),
      },
      type: 'Opaque',
      data,
    }
    try {
      await (present ? kube.update(secrets, secret) : kube.create(secrets, secret))
    } catch (error) {
      if (!isKubeError(error, 'Conflict', 'AlreadyExists', 'NotFound')) throw error
      this.#schedule(LINGER_MS) // changed under us: look again
    }
  }
}

function sorted(data: Readonly<Record<string, string>>): Array<[string, string]> {
  return Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1))
}
