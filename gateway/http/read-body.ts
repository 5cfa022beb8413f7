import type { IncomingMessage, ServerResponse } from 'node:http'
import { constantError, GatewayError, sharedError } from '../errors.ts'
import { ChunkList } from '#platform/chunk-list.ts'
import type { LoopShare } from '#platform/loop-share.ts'
import { boundaryIn } from '../dialects/form-body.ts'
import type { BodyHold } from './body-budget.ts'
import type { Whose } from './shares.ts'

/** The first bytes of a body, up to this number, never wait for a turn. */
const UNHURRIED_BYTES = 2 ** 20
const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i

/** Checks a body by its headers, before it is read. @param maxBytes size of the largest body @param isForm whether it must be a form */
export function checkDeclaredBody(request: IncomingMessage, maxBytes: number, isForm = false): GatewayError | undefined {
  const { 'content-length': length, 'content-encoding': encoding, 'content-type': type } = request.headers
  if (length !== undefined && Number(length) > maxBytes) return tooLarge(maxBytes)
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return new GatewayError('unsupportedBody', { reason: 'Encoding: send the body uncompressed' })
  }
  return wrongType(type, isForm)
}

/** JSON needs no type. */
function wrongType(type: string | undefined, isForm: boolean): GatewayError | undefined {
  if (isForm ? boundaryIn(type) !== undefined : !/^\s*multipart\//i.test(type ?? '')) return undefined
  const wanted = isForm ? 'multipart/form-data, with a plain boundary' : 'application/json'
  return new GatewayError('unsupportedBody', { reason: `Type: send the body as ${wanted}` })
}

interface BodyBounds {
  readonly maxBytes: number
  readonly hold: BodyHold
  /** What the share of the tenant belongs to. */
  readonly whose: Whose
  /** Schedules large chunks: bytes of a body beyond the first MiB wait for their turn. */
  readonly loop: LoopShare
}

/**
 * Reads a whole body. Sends `100 Continue` first if the client waits for it. `requestTimeout` of the server bounds the time.
 * @param bounds maximum size and booking of the bytes
 * @returns the bytes (without a copy if they arrived in one chunk); a refusal if the body exceeds `maxBytes` or there is no room for it;
 * undefined if no client waits for an answer, because the client left or was already answered with row 8
 */
export function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  { maxBytes, hold, loop, whose }: BodyBounds,
): Promise<Buffer | GatewayError | undefined> {
  return new Promise((resolve) => {
    const chunks = new ChunkList()
    const take = (chunk: Buffer): void => {
      const bytes = chunks.bytes + chunk.length
      const refusal = bytes > maxBytes ? tooLarge(maxBytes) : refusalToHold(hold, chunk.length, whose)
      if (refusal === undefined) {
        chunks.add(chunk)
        if (bytes > UNHURRIED_BYTES && loop.spend(chunk.length, 0)) waitForTurn(request, loop)
        return
      }
      request.off('data', take) // the error sender discards the rest
      chunks.clear()
      hold.release()
      resolve(refusal)
    }
    request.on('data', take)
    request.on('end', () => resolve(chunks.take())) // empties the list, because the request stays in memory until its answer ends
    // Also fires after `end`, when resolving again has no effect. Without an `error` listener, `close` is the only event for an aborted upload.
    request.on('close', resolve.bind(undefined, undefined))
    if (request.headers.expect !== undefined && CONTINUE.test(request.headers.expect)) response.writeContinue()
  })
}

function waitForTurn(request: IncomingMessage, loop: LoopShare): void {
  request.pause()
  loop.wait({
    onTurn() {
      request.resume()
      return !request.destroyed
    },
  })
}

const FULL: Readonly<Record<Whose, GatewayError>> = {
  key: constantError('tooManyBodies', { whose: 'key' }),
  account: constantError('tooManyBodies', { whose: 'account' }),
  namespace: constantError('tooManyBodies', { whose: 'namespace' }),
}

/** Books bytes of a body. @returns row 40 if there is no room now; row 7 if there never is */
export function refusalToHold(hold: BodyHold, bytes: number, whose: Whose): GatewayError | undefined {
  const taken = hold.take(bytes)
  if (taken === 'Taken') return undefined
  if (taken === 'TooLarge')
    return new GatewayError('bodyTooLarge', { reason: 'what the model server would get does not fit into the gateway' })
  return taken === 'ProcessFull' ? sharedError('bodiesFull') : FULL[taken === 'KeyFull' ? 'key' : whose]
}

function tooLarge(maxBytes: number): GatewayError {
  const mebibytes = maxBytes / 2 ** 20
  const limit = Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${maxBytes} bytes`
  return new GatewayError('bodyTooLarge', { reason: `the body may have at most ${limit}` })
}
