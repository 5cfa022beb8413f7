/** A browser of the dashboard's tests that keeps all answers, and notes every cookie as a secret. */
import { type Canaries } from './canaries.ts'
import { FormBrowser, type Visit } from './dashboard-world.ts'

/** Paths whose answers hand a secret to the person who asked for it. */
const HANDED_OUT = /^\/api\/two-factor\/(start|backup-codes)$/

export class CanaryBrowser extends FormBrowser {
  readonly #canaries: Canaries
  /** Heads of all answers, with the addresses that they lead to, without cookies. */
  readonly heads: string[]
  /** Bodies of all answers to scripts, but those that hand out a secret. */
  readonly bodies: string[]
  readonly #noted = new Set<string>()

  constructor(origin: string, headers: Readonly<Record<string, string>>, kept: { canaries: Canaries; heads: string[]; bodies: string[] }) {
    super(origin, headers)
    this.#canaries = kept.canaries
    this.heads = kept.heads
    this.bodies = kept.bodies
  }

  override async get(path: string): Promise<Visit> {
    return this.#keep(path, await super.get(path))
  }

  override async post(path: string, fields: Readonly<Record<string, string>>): Promise<Visit> {
    return this.#keep(path, await super.post(path, fields))
  }

  override async call(method: string, path: string, body?: object): Promise<Visit> {
    return this.#keep(path, await super.call(method, path, body))
  }

  #keep(path: string, visit: Visit): Visit {
    const headers = [...visit.headers].filter(([name]) => name !== 'set-cookie').map((pair) => pair.join(': '))
    this.heads.push(`${visit.status} ${headers.join('\n')}`)
    if (path.startsWith('/api/') && !HANDED_OUT.test(path)) this.bodies.push(visit.text)
    for (const [name, value] of this.cookies) if (!this.#noted.has(value)) this.#note(name, value)
    return visit
  }

  #note(name: string, value: string): void {
    this.#noted.add(value)
    this.#canaries.note(`the cookie ${name}`, value)
    const parts = decodeURIComponent(value).split('.')
    if (parts.length < 2) return // encrypted as a whole
    this.#canaries.note(`the signature of the cookie ${name}`, parts.at(-1))
    if (name !== 'headgate.sign_up') this.#canaries.note(`the first part of the cookie ${name}`, parts[0]) // there, it names the person
  }
}
