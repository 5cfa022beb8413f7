import { expect, test } from 'vitest'
import { loadLibrary } from './redis-library.ts'

const CODE = '#!lua name=lib\n-- headgate revision 5\n'
const KEPT = { library: 'lib', code: CODE, revision: 'lib_revision' }

/** One server with the `revision` of its library; undefined without a library. */
class Server {
  readonly calls: string[] = []
  #revision: number | undefined
  #text: string | undefined

  constructor(revision: number | undefined, text?: string) {
    this.#revision = revision
    this.#text = text
  }

  async call(command: string, ...args: string[]): Promise<unknown> {
    this.calls.push([command, args[0]].join(' '))
    if (command === 'FCALL') {
      if (this.#revision === undefined) throw new Error('ERR Function not found')
      return this.#revision
    }
    if (args[0] === 'LIST') return this.#text === undefined ? [] : [['library_name', 'lib', 'library_code', this.#text]]
    return 'lib'
  }
}

const isLoaded = ({ calls }: Server): boolean => calls.includes('FUNCTION LOAD')

test('a server with missing or older functions gets the functions, and no other server', async () => {
  const servers = {
    empty: new Server(undefined),
    silent: new Server(undefined, '-- headgate revision 1'), // a library without the function that returns the revision
    older: new Server(4, '-- headgate revision 4'),
    same: new Server(5, CODE),
    changed: new Server(5, `${CODE}-- damaged`),
    newer: new Server(6, '-- headgate revision 6'),
  }
  for (const server of Object.values(servers)) await loadLibrary(server, KEPT)
  expect(Object.entries(servers).map(([name, server]) => [name, isLoaded(server)])).toEqual([
    ['empty', true],
    ['silent', true],
    ['older', true],
    ['same', false],
    ['changed', true],
    ['newer', false],
  ])
})

test('after the text was compared, a check is one call and no list of texts, unless the functions are missing', async () => {
  const servers = { empty: new Server(undefined), older: new Server(4, '-- headgate revision 4'), same: new Server(5, CODE) }
  for (const server of Object.values(servers)) await loadLibrary(server, KEPT, true)
  expect([isLoaded(servers.empty), isLoaded(servers.older), servers.same.calls]).toEqual([true, true, ['FCALL lib_revision']])
})

test('a server that refuses the call does not count as a server without functions', async () => {
  const refusing = { call: () => Promise.reject(new Error('NOPERM this user has no permissions')) }
  await expect(loadLibrary(refusing, KEPT, true)).rejects.toThrow('NOPERM')
})
