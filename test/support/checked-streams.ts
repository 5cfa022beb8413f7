/**
 * Every stream of Messages that a gateway of the tests writes is checked by the grammar, whatever reads the stream: in the process of a test
 * (`checked-streams-setup.ts`) and in programs (`checked-streams-preload.ts`). All note into one file.
 */
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isMessageStream, MessageCheck } from './message-grammar.ts'

/** Names the file. Without the variable, as in a measurement, programs check nothing. */
export const STREAMS_FILE = 'HEADGATE_STREAMS_FILE'
const PRELOAD = pathToFileURL(join(import.meta.dirname, 'checked-streams-preload.ts')).href
/** A stream of a model server in the same process has not both ids of a gateway's request. */
const OWN_IDS = /^x-request-id: (req_[\w-]+)\r\nrequest-id: \1\r$/im
/** Of a stream with a fault, this many characters before the fault are noted. */
const SHOWN = 50_000

/** A line of the file: a stream has begun, or has a fault. */
interface Note {
  readonly fault?: string
}

/** The environment by which a program that has a gateway checks its streams. */
export function checkedStreamsEnv(): Record<string, string> {
  const file = process.env[STREAMS_FILE]
  return file === undefined ? {} : { NODE_OPTIONS: `--import=${PRELOAD}`, [STREAMS_FILE]: file }
}

export interface Noted {
  /** Streams that have begun. */
  readonly streams: number
  readonly faults: readonly string[]
}

/** @param from bytes that are known already */
function notesIn(file: string, from = 0): Noted {
  const lines = existsSync(file) ? readFileSync(file).subarray(from).toString().split('\n').filter(Boolean) : []
  const notes = lines.map((line) => JSON.parse(line) as Note) // written below
  const faults = notes.flatMap(({ fault }) => fault ?? [])
  return { streams: notes.length - faults.length, faults }
}

let taken = { file: '', bytes: 0 }

/** Faults of this process and of its programs since the last call. */
export function takeFaults(): readonly string[] {
  const file = process.env[STREAMS_FILE] ?? ''
  const from = taken.file === file ? taken.bytes : 0
  taken = { file, bytes: existsSync(file) ? statSync(file).size : 0 }
  return notesIn(file, from).faults
}

/** The notes of a run of integration tests, with a file for each file of tests. */
export const notesFolder = (runFolder: string): string => join(runFolder, 'streams')

/** All notes of a run. */
export function notesOfRun(folder: string): Noted {
  const all = existsSync(folder) ? readdirSync(folder).map((name) => notesIn(join(folder, name))) : []
  return { streams: all.reduce((sum, { streams }) => sum + streams, 0), faults: all.flatMap(({ faults }) => faults) }
}

/** A command outside of the layers, whose programs check their streams. */
export interface CheckedRun {
  /** Gets the notes, as the file `streams`. */
  readonly folder: string
  /** Whether a run without a stream of Messages has failed, too. */
  readonly mustHaveSome: boolean
  readonly run: () => Promise<number>
}

/** Prints the faults and the number of streams. @returns the exit code of the run; 1 after a fault */
export async function withCheckedStreams({ folder, mustHaveSome, run }: CheckedRun): Promise<number> {
  const file = join(folder, 'streams')
  process.env[STREAMS_FILE] = file
  const code = await run()
  const { streams, faults } = notesIn(file)
  const failures = streams === 0 && mustHaveSome ? ['no stream of Messages was checked'] : faults
  for (const failure of failures) process.stdout.write(`FAILED: ${failure}\n`)
  process.stdout.write(`streams of Messages: ${streams} checked, ${faults.length} faults\n`)
  return failures.length > 0 ? 1 : code
}

type Bytes = readonly [chunk?: unknown, encoding?: unknown, ...rest: unknown[]]

/** Installs the check in this process. A fault is noted before its bytes leave, so that neither the reader nor a kill is faster. */
export function checkAnswers(): void {
  // oxlint-disable-next-line typescript/unbound-method -- called with their answer
  const { write, end } = ServerResponse.prototype
  const watched = new WeakMap<ServerResponse, AnswerCheck | undefined>()
  const checkOf = (response: ServerResponse): AnswerCheck | undefined => {
    if (!watched.has(response) && response.headersSent) watched.set(response, isOwnStream(response) ? new AnswerCheck() : undefined)
    return watched.get(response)
  }
  Object.assign(ServerResponse.prototype, {
    write(this: ServerResponse, ...args: Bytes): unknown {
      checkOf(this)?.push(bytesOf(args))
      return Reflect.apply(write, this, args)
    },
    end(this: ServerResponse, ...args: Bytes): unknown {
      const check = checkOf(this)
      check?.push(bytesOf(args))
      if (!this.destroyed) check?.end() // else the client has left
      return Reflect.apply(end, this, args)
    },
  })
}

function bytesOf([chunk, encoding]: Bytes): Buffer {
  if (typeof chunk === 'string') return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  return chunk instanceof Uint8Array ? Buffer.from(chunk) : Buffer.alloc(0)
}

function isOwnStream(response: ServerResponse): boolean {
  const head = String(Reflect.get(response, '_header')) // getHeader does not know the headers of writeHead
  const [, type] = /^content-type: (.*)\r$/im.exec(head) ?? []
  const [path = ''] = (response.req.url ?? '').split('?')
  return isMessageStream(path, type) && OWN_IDS.test(head)
}

/** The check of one answer, up to its first fault. */
class AnswerCheck {
  readonly #check = new MessageCheck()
  #shown = ''
  #isOver = false

  constructor() {
    note({})
  }

  push(bytes: Buffer): void {
    if (this.#isOver) return
    this.#shown = (this.#shown + bytes.toString()).slice(-SHOWN)
    this.#try(() => this.#check.push(bytes))
  }

  end(): void {
    if (!this.#isOver) this.#try(() => this.#check.end())
    this.#isOver = true
  }

  #try(check: () => unknown): void {
    try {
      check()
    } catch (error) {
      this.#isOver = true
      note({ fault: `${String(error)} in the stream\n${this.#shown}` })
    }
  }
}

/** One short write to the end of the file: the notes of several processes do not mix. */
function note(line: Note): void {
  appendFileSync(process.env[STREAMS_FILE] ?? '', `${JSON.stringify(line)}\n`)
}
