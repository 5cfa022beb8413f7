/** Shifts the clock of the ledger in a running Redis by loading the library again with an offset. The system clock stays as it is. */
import type { Redis } from 'ioredis'
import { z } from 'zod'

const TIME = `return time[1] * 1000 +`
const listReply = z.array(z.array(z.unknown()))

export class ClockOfRedis {
  readonly #admin: Redis
  readonly #code: string
  /** How far the time is behind that of the machine, ms. */
  behindMs = 0

  private constructor(admin: Redis, code: string) {
    this.#admin = admin
    this.#code = code
  }

  /** @param admin connection to a Redis into which an operator has loaded the library */
  static async of(admin: Redis): Promise<ClockOfRedis> {
    const [fields = []] = listReply.parse(await admin.call('FUNCTION', 'LIST', 'LIBRARYNAME', '*_ledger_v*', 'WITHCODE'))
    const code = z.string().parse(fields[fields.indexOf('library_code') + 1])
    if (code.split(TIME).length !== 2) throw new Error('the library of the ledger does not read its time in one place')
    return new ClockOfRedis(admin, code)
  }

  async setBehind(ms: number): Promise<void> {
    await this.#admin.call('FUNCTION', 'LOAD', 'REPLACE', this.#code.replace(TIME, `${TIME} ${-ms} +`))
    this.behindMs = ms
  }
}
