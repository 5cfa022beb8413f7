/** A certificate authority, made by openssl, and a TLS front for a plain server. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { promisify } from 'node:util'
import { listening } from './listening.ts'

const run = promisify(execFile)
const openssl = (args: readonly string[]) => run('openssl', args)
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

export class PrivateCa {
  readonly #folder: string

  /** @param folder with `ca.crt` and `ca.key` */
  constructor(folder: string) {
    this.#folder = folder
  }

  static async make(folder: string): Promise<PrivateCa> {
    mkdirSync(folder, { recursive: true })
    const ca = new PrivateCa(folder)
    await openssl(['req', '-x509', ...NEW_KEY, '-days', '2', '-subj', '/CN=private-ca', '-keyout', ca.#file('ca.key'), '-out', ca.file])
    return ca
  }

  get file(): string {
    return this.#file('ca.crt')
  }

  /** Makes a certificate. @param subject alternative name, such as `IP:10.0.0.1` or `DNS:model` */
  async certify(subject: string): Promise<{ readonly key: Buffer; readonly cert: Buffer }> {
    const name = randomUUID()
    const [key, csr, cert, extensions] = ['key', 'csr', 'crt', 'ext'].map((ending) => this.#file(`${name}.${ending}`)) as [
      string,
      string,
      string,
      string,
    ]
    writeFileSync(extensions, `subjectAltName=${subject}\n`)
    await openssl(['req', '-new', ...NEW_KEY, '-subj', '/CN=backend', '-keyout', key, '-out', csr])
    const ca = ['-CA', this.file, '-CAkey', this.#file('ca.key'), '-set_serial', '7']
    await openssl(['x509', '-req', '-in', csr, ...ca, '-days', '2', '-extfile', extensions, '-out', cert])
    return { key: readFileSync(key), cert: readFileSync(cert) }
  }

  #file(name: string): string {
    return join(this.#folder, name)
  }
}

export interface TlsFront {
  readonly port: number
  close(): void
}

/** Ends TLS on `host` and passes the bytes on to a plain server there. */
export async function startTlsFront(
  identity: { readonly key: Buffer; readonly cert: Buffer },
  host: string,
  target: number,
): Promise<TlsFront> {
  const sockets = new Set<Socket>()
  const server = createServer(identity, (socket) => {
    const plain = connect(target, host)
    for (const [one, other] of [
      [socket, plain],
      [plain, socket],
    ] as const) {
      sockets.add(one)
      one.on('error', () => other.destroy()).on('close', () => other.destroy())
      one.pipe(other)
    }
  })
  server.on('tlsClientError', () => undefined) // some tests want a client that does not trust this CA
  const port = await listening(server, host)
  const close = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return { port, close }
}
