/** Plain HTTPS to an API server, for tests of the server itself: these must not use the operator's client. */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { parse } from 'yaml'
import { z } from 'zod'

const kubeconfig = z.object({
  clusters: z.tuple([z.object({ cluster: z.object({ server: z.url(), 'certificate-authority-data': z.base64() }) })]),
  users: z.tuple([
    z.object({
      user: z.object({
        'client-certificate-data': z.base64().optional(),
        'client-key-data': z.base64().optional(),
        token: z.string().optional(),
      }),
    }),
  ]),
})

/** An answer: HTTP status and parsed JSON. */
export interface ApiAnswer {
  readonly status: number
  readonly body: unknown
}

/** Sends one request, with `body` as JSON. */
export type CallApi = (method: string, path: string, body?: unknown, contentType?: string) => Promise<ApiAnswer>

/** @param file a kubeconfig with one cluster and one user, credentials included */
export function apiServer(file: string): CallApi {
  const config = kubeconfig.parse(parse(readFileSync(file, 'utf8')))
  const { server, 'certificate-authority-data': ca } = config.clusters[0].cluster
  const { token, 'client-certificate-data': cert, 'client-key-data': key } = config.users[0].user
  const agent = new Agent({ keepAlive: true, maxSockets: 8, ca: decode(ca), cert: decode(cert), key: decode(key) })
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return (method, path, body, contentType = 'application/json') =>
    new Promise((resolve, reject) => {
      const call = request(new URL(path, server), { method, agent, headers: { ...headers, 'content-type': contentType } }, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('error', reject)
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) }))
      })
      call.on('error', reject)
      call.end(body === undefined ? undefined : JSON.stringify(body))
    })
}

function decode(base64: string | undefined): Buffer | undefined {
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64')
}
