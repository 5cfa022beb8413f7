/** The routes below `/api`, as functions. A refusal of the server becomes a `Refused`, and no answer an `Unreachable`. */
import type { KeyForm, Keys, KeyView, NewKey, PlanView } from '../server/page-data/keys.ts'
import type {
  BackupCodes,
  LinkedProviders,
  LinkStart,
  Me,
  Refusal,
  RefusalCode,
  Sessions,
  TwoFactorStart,
} from '../server/page-data/people.ts'
import type { Billing, TopUpState } from '../server/page-data/billing.ts'
import type { Usage } from '../server/page-data/usage.ts'
import { signInPath } from './sign-in-path.ts'

export class Refused extends Error {
  override readonly name = 'Refused'
  readonly code: RefusalCode
  readonly fields: Readonly<Record<string, string>>
  /** '' where a proxy answered in place of the dashboard. */
  readonly requestID: string

  constructor({ code, message, fields, requestID }: Refusal['error']) {
    super(message)
    this.code = code
    this.fields = fields ?? {}
    this.requestID = requestID
  }
}

/** The request may have arrived, but no answer came back. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable'
}

export interface Surroundings {
  readonly fetch: (path: string, init: RequestInit) => Promise<Response>
  /** The path of the page, with its query. */
  readonly here: () => string
  /** Leaves the app for a page that the server renders. */
  readonly leave: (path: string) => void
}

export type API = ReturnType<typeof createAPI>

export function createAPI(surroundings: Surroundings) {
  const send = (method: string, path: string, body?: object): Promise<Response> => answered(surroundings, method, path, body)
  const json = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const answer = await send(method, `/api${path}`, body)
    const read: unknown = await answer.json().catch((error: unknown) => {
      throw new Unreachable('The answer of the dashboard was cut off.', { cause: error })
    })
    return read as T // the server's own type of this route
  }
  const done = async (method: string, path: string, body?: object): Promise<void> => void (await send(method, `/api${path}`, body))
  const id = encodeURIComponent
  return {
    me: () => json<Me>('GET', '/me'),
    rename: (name: string) => json<Me>('PATCH', '/me', { name }),
    signOut: () => done('POST', '/sign-out', {}),
    confirm: (proof: { readonly password: string; readonly code?: string }) => done('POST', '/confirm', proof),
    changeEmail: (email: string) => done('POST', '/email', { email }),
    changePassword: (next: string, current?: string) => done('POST', '/password', { ...(current === undefined ? {} : { current }), next }),
    providers: () => json<LinkedProviders>('GET', '/providers'),
    link: (provider: string) => json<LinkStart>('POST', `/providers/${id(provider)}/link`, {}),
    unlink: (provider: string) => done('DELETE', `/providers/${id(provider)}`),
    sessions: () => json<Sessions>('GET', '/sessions'),
    endSession: (session: string) => done('DELETE', `/sessions/${id(session)}`),
    endOtherSessions: () => done('POST', '/sessions/end-others', {}),
    startTwoFactor: () => json<TwoFactorStart>('POST', '/two-factor/start', {}),
    turnOnTwoFactor: (code: string) => done('POST', '/two-factor/confirm', { code }),
    turnOffTwoFactor: () => done('POST', '/two-factor/off', {}),
    newBackupCodes: () => json<BackupCodes>('POST', '/two-factor/backup-codes', {}),
    exported: async () => (await send('GET', '/api/export')).blob(),
    deleteAccount: (email: string) => done('POST', '/account/delete', { email }),

    keys: () => json<Keys>('GET', '/keys'),
    key: (key: string) => json<KeyView>('GET', `/keys/${id(key)}`),
    createKey: (form: KeyForm, attempt: string) => json<NewKey>('POST', '/keys', { ...form, attempt }),
    editKey: (key: string, form: KeyForm) => json<KeyView>('PATCH', `/keys/${id(key)}`, form),
    suspendKey: (key: string) => json<KeyView>('POST', `/keys/${id(key)}/suspend`, {}),
    resumeKey: (key: string) => json<KeyView>('POST', `/keys/${id(key)}/resume`, {}),
    replaceKey: (key: string, overlapSeconds: number) => json<NewKey>('POST', `/keys/${id(key)}/replace`, { overlapSeconds }),
    endFormerValue: (key: string) => json<KeyView>('POST', `/keys/${id(key)}/end-former`, {}),
    revokeKey: (key: string, name: string) => json<KeyView>('POST', `/keys/${id(key)}/revoke`, { name }),
    plan: () => json<PlanView>('GET', '/plan'),

    usage: (from: string, to: string) => json<Usage>('GET', `/usage?from=${id(from)}&to=${id(to)}`),
    billing: () => json<Billing>('GET', '/billing'),
    topUp: (amount: string, attempt: string) => json<{ readonly url: string }>('POST', '/billing/top-up', { amount, attempt }),
    checkTopUp: (session: string) => json<TopUpState>('POST', '/billing/top-up/check', { session }),
    /** @param path of a file below the origin: `/api/billing/ledger.csv` */
    file: async (path: string) => (await send('GET', path)).blob(),
  }
}

async function answered({ fetch, here, leave }: Surroundings, method: string, path: string, body?: object): Promise<Response> {
  const headers = { accept: 'application/json', ...(method === 'GET' ? {} : { 'content-type': 'application/json' }) }
  const answer = await fetch(path, { method, headers, cache: 'no-store', ...(body && { body: JSON.stringify(body) }) }).catch(
    (error: unknown) => {
      throw new Unreachable('The dashboard does not answer.', { cause: error })
    },
  )
  if (answer.ok) return answer
  const refused = await refusalOf(answer)
  if (refused.code !== 'session-ended') throw refused
  leave(signInPath('session-ended', here()))
  return new Promise(() => undefined) // the page is being left: no error may flash up before
}

/** The refusal in an answer, also if a proxy wrote the answer. */
async function refusalOf(answer: Response): Promise<Refused> {
  const body: unknown = await answer.json().catch(() => undefined)
  if (isRefusal(body)) return new Refused(body.error)
  const isAway = answer.status === 502 || answer.status === 503 || answer.status === 504
  const code = answer.status === 401 ? 'session-ended' : isAway ? 'unavailable' : 'internal'
  return new Refused({ code, message: `The answer had status ${answer.status} and no reason.`, requestID: '' })
}

function isRefusal(body: unknown): body is Refusal {
  if (typeof body !== 'object' || body === null || !('error' in body)) return false
  const { error } = body
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
}
