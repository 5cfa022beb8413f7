import { EventEmitter } from 'node:events'
import { createServer, type Server } from 'node:http'
import { describe, expect, test } from 'vitest'
import { settle } from '../../test/support/manual-clock.ts'
import { listen, Misconfigured, runProgram, type ProcessPort, type Running } from './lifecycle.ts'

/** A process that only writes down what would happen to it. */
class FakeProcess extends EventEmitter implements ProcessPort {
  readonly codes: number[] = []
  text = ''
  readonly stdout = new EventEmitter()
  readonly stderr = Object.assign(new EventEmitter(), { write: (text: string) => void (this.text += text) })

  exit(code: number): void {
    this.codes.push(code)
  }
}

function running(change: Partial<Running> = {}): Running {
  return { stop: () => Promise.resolve(), failed: new Promise(() => undefined), ...change }
}

describe('a program', () => {
  test('that cannot run exits 1 with one line per reason', async () => {
    const port = new FakeProcess()
    await runProgram('gateway', () => Promise.reject(new Misconfigured(['A: is wrong; mend it', 'B: is not set; set it'])), port)
    expect(port.codes).toEqual([1])
    expect(port.text).toBe('gateway: A: is wrong; mend it\ngateway: B: is not set; set it\n')
  })

  test.each(['SIGTERM', 'SIGINT'])('stops in order and exits 0 on %s, with its log written', async (signal) => {
    const port = new FakeProcess()
    const steps: string[] = []
    const stop = (): Promise<void> => Promise.resolve().then(() => void steps.push('stop'))
    const log = { debug: drop, info: drop, warn: drop, error: drop }
    const done = runProgram(
      'gateway',
      (use) => {
        use({ log, flush: () => void steps.push('flush') })
        return Promise.resolve(running({ stop }))
      },
      port,
    )
    await settle()
    port.emit(signal)
    await done
    expect(port.codes).toEqual([0])
    expect(steps).toEqual(['stop', 'flush'])
  })

  test('writes its log before the reason of its end, so that the lines stay in order where both go to one place', async () => {
    const port = new FakeProcess()
    const log = { debug: drop, info: drop, warn: drop, error: drop }
    const flush = (): void => void (port.text += port.text.includes('logged') ? '' : 'logged\n')
    await runProgram(
      'gateway',
      (use) => {
        use({ log, flush })
        return Promise.reject(new Misconfigured('A: is wrong; correct it'))
      },
      port,
    )
    expect(port.text).toBe('logged\ngateway: A: is wrong; correct it\n')
  })

  test('continues when the reader of its output has ended', async () => {
    const port = new FakeProcess()
    void runProgram('gateway', () => Promise.resolve(running()), port)
    await settle()
    port.stdout.emit('error', new Error('write EPIPE')) // an error event without a listener would be thrown here
    port.stderr.emit('error', new Error('write EPIPE'))
    expect(port.codes).toEqual([])
  })

  test('that gets two signals ends at once', async () => {
    const port = new FakeProcess()
    void runProgram('gateway', () => Promise.resolve(running({ stop: () => new Promise(() => undefined) })), port)
    await settle()
    port.emit('SIGTERM')
    await settle()
    port.emit('SIGTERM')
    expect(port.codes).toEqual([1])
  })

  test('that cannot go on later exits 1 with its reason', async () => {
    const port = new FakeProcess()
    await runProgram(
      'gateway',
      () => Promise.resolve(running({ failed: Promise.reject(new Misconfigured('Redis evicts; set noeviction')) })),
      port,
    )
    expect(port.codes).toEqual([1])
    expect(port.text).toBe('gateway: Redis evicts; set noeviction\n')
  })

  test('dies of an uncaught error, and logs its stack', async () => {
    const port = new FakeProcess()
    void runProgram('gateway', () => Promise.resolve(running()), port)
    await settle()
    port.emit('uncaughtException', new TypeError('bug'))
    expect(port.codes).toEqual([1])
    expect(port.text).toMatch(/^gateway: TypeError: bug\n {4}at /)
  })
})

test('a port that is taken is named with its setting and the remedy', async () => {
  const first = createServer()
  const port = await listen(first, 'PORT', { port: 0 })
  await expect(listen(createServer(), 'PORT', { port })).rejects.toThrow(
    `PORT: port ${port} is taken by another process; stop that process or set PORT to a free port`,
  )
  first.close()
  await expect(listen(failing(Object.assign(new Error(), { code: 'EACCES' })), 'PORT', { port: 80 })).rejects.toThrow(Misconfigured)
  const other = new Error('other')
  await expect(listen(failing(other), 'PORT', { port: 80 })).rejects.toBe(other)
})

/** A server that cannot listen. */
function failing(error: Error): Server {
  const server = createServer()
  return Object.assign(server, { listen: () => (queueMicrotask(() => server.emit('error', error)), server) })
}

function drop(): void {
  return
}
