/** SQLite files whose writes do not wait for the disk. A test may end the process, which loses nothing; no test cuts the power. */
import { DatabaseSync } from 'node:sqlite'

export class QuickDatabase extends DatabaseSync {
  override exec(sql: string): void {
    super.exec(sql.replace('synchronous = FULL', 'synchronous = OFF'))
  }
}
