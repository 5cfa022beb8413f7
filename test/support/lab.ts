/** The start of an integration test: the parts that the run shares, and functions to start more. */
import { appendFileSync, mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, expect, inject } from 'vitest'
import { ControlPlane } from './control-plane.ts'
import type { LabAddress } from './integration-setup.ts'
import { RedisPart } from './redis-part.ts'
import { dumpCluster, recordIssuedValues } from './secret-search.ts'
import { Stack, type StackOptions } from './stack.ts'

export class Lab {
  readonly address: LabAddress
  /** The control plane that all test files share: use namespaces of your own, and never stop it. */
  readonly plane: ControlPlane
  readonly #name: string
  readonly #closers: (() => Promise<unknown>)[] = []
  #count = 0

  constructor(address: LabAddress, name: string) {
    this.address = address
    this.plane = new ControlPlane(address.controlPlane)
    this.#name = name
  }

  /** The folder of the run: logs/, records/ and the rest. Everything in it is searched for issued values at the end. */
  get folder(): string {
    return this.address.folder
  }

  /** Starts a Headgate of this file's own on the shared API server, or on `plane`. */
  async stack(options: StackOptions = {}, plane: ControlPlane = this.plane): Promise<Stack> {
    const { ip, folder, modelServer } = this.address
    const stack = await Stack.open({ name: this.#next(), ip, folder, plane, modelServer }, options)
    this.#closers.push(() => stack.close())
    return stack
  }

  /** Starts a control plane of this file's own, which tests may kill and stop (about 4 s). */
  async ownControlPlane(): Promise<ControlPlane> {
    const plane = await ControlPlane.start(join(this.folder, `${this.#next()}-control-plane`), this.address.ip)
    const recording = new AbortController()
    recordIssuedValues(plane, this.folder, recording.signal)
    this.#closers.push(async () => {
      await dumpCluster(plane, this.folder).catch(() => undefined) // a test may have killed the API server
      recording.abort()
      await plane.stop()
    })
    return plane
  }

  /** Starts a Redis of this file's own, outside of any stack. */
  async redis(options: { readonly policy?: string; readonly args?: readonly string[] } = {}): Promise<RedisPart> {
    const redis = await RedisPart.start(join(this.folder, 'redis', this.#next()), this.address.ip, options)
    this.#closers.push(() => redis.stop())
    return redis
  }

  /** Keeps a text that a user saw (an error body, a header block) for the search for issued values. @returns the text */
  record(text: string): string {
    mkdirSync(join(this.folder, 'records'), { recursive: true })
    appendFileSync(join(this.folder, 'records', `${this.#name}.bodies`), `${text}\n`)
    return text
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close()
    await this.plane.admin.close()
  }

  #next(): string {
    return this.#count++ === 0 ? this.#name : `${this.#name}-${this.#count}`
  }
}

/** Opens the lab at the top level of a test file, and closes it after the file. Names of namespaces and logs come from the file's name. */
export function openLab(): Lab {
  const name = basename(expect.getState().testPath ?? 'test').replace(/\.test\.ts$/, '')
  const lab = new Lab(inject('lab'), name)
  afterAll(() => lab.close()) // after the other hooks of the file
  return lab
}
