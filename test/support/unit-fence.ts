/**
 * Loaded before the unit tests of a process: a server, a database, a thread or a program that one of them opens is refused. It does not
 * see programs that are composed without any of these (`OperatorWorld`): `test/contract/harness.test.ts` searches for their imports.
 */
import { ChildProcess } from 'node:child_process'
import { Server } from 'node:net'
import { DatabaseSync } from 'node:sqlite'

function refuse(what: string): () => never {
  return () => {
    throw new Error(`a unit test opens ${what}: such a test belongs into x.contract.test.ts (test/README.md, Layers)`)
  }
}

Server.prototype.listen = refuse('a port')
DatabaseSync.prototype.exec = refuse('a database')
DatabaseSync.prototype.prepare = refuse('a database')
Object.assign(ChildProcess.prototype, { spawn: refuse('a program') })
process.on('worker', refuse('a thread'))
