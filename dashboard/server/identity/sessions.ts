/** Reads and ends sessions. A session is not a permission by itself: its person must have a verified address at every call. */
import type { Clock } from '#platform/clock.ts'
import type { Client } from '../http/exchange.ts'
import type { Auth } from './auth.ts'

export interface Session {
  readonly id: string
  readonly createdMs: number
  readonly person: Person
  /** Set-Cookie values that prolong the session. */
  readonly cookies: readonly string[]
}

export interface Person {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly createdAt: string
  readonly hasTwoFactor: boolean
}

export interface SessionView {
  readonly id: string
  readonly createdAt: string
  readonly lastUsedAt: string
  readonly address: string
  readonly agent: string
}

/** A session ends after this time even if it is used, ms. */
const ABSOLUTE_MS = 30 * 86_400_000

export class Sessions {
  readonly #auth: Auth
  readonly #clock: Clock

  constructor(auth: Auth, clock: Clock) {
    this.#auth = auth
    this.#clock = clock
  }

  /** @returns undefined without a session, for one that has ended, and for a person without a verified address */
  async read(client: Client): Promise<Session | undefined> {
    if (client.cookie === '') return undefined
    const { response, headers } = await this.#auth.api.getSession({ headers: headersOf(client), returnHeaders: true })
    if (!response?.user.emailVerified) return undefined
    const { session, user } = response
    const createdMs = session.createdAt.getTime()
    if (this.#clock.now() - createdMs >= ABSOLUTE_MS) {
      await (await this.#auth.$context).internalAdapter.deleteSession(session.token)
      return undefined
    }
    return { id: session.id, createdMs, person: personOf(user), cookies: headers.getSetCookie() }
  }

  async list(person: Person): Promise<readonly SessionView[]> {
    const { internalAdapter } = await this.#auth.$context
    const sessions = await internalAdapter.listSessions(person.id)
    return sessions.map(({ id, createdAt, updatedAt, ipAddress, userAgent }) => ({
      id,
      createdAt: createdAt.toISOString(),
      lastUsedAt: updatedAt.toISOString(),
      address: ipAddress ?? '',
      agent: userAgent ?? '',
    }))
  }

  /** Ends sessions of the person. @returns how many there were */
  async end(person: Person, isEnding: (id: string) => boolean): Promise<number> {
    const { internalAdapter } = await this.#auth.$context
    const ending = (await internalAdapter.listSessions(person.id)).filter(({ id }) => isEnding(id))
    for (const { token } of ending) await internalAdapter.deleteSession(token)
    return ending.length
  }
}

export function headersOf({ cookie, agent }: Client): Headers {
  return new Headers({ cookie, 'user-agent': agent })
}

interface UserRow {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly createdAt: Date
  readonly twoFactorEnabled?: boolean | null | undefined
}

export function personOf({ id, name, email, createdAt, twoFactorEnabled }: UserRow): Person {
  return { id, name, email, createdAt: createdAt.toISOString(), hasTwoFactor: twoFactorEnabled === true }
}
