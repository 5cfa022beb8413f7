/** A vitest reporter that counts the results of a run and writes them to a file for `test/run-layers.ts`. */
import { writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/** What one vitest process counted; `reason` of a skip is the note given to `ctx.skip(note)`. */
export interface RunCounts {
  readonly passed: number
  readonly failed: number
  readonly skips: ReadonlyArray<{ readonly name: string; readonly reason: string }>
}

/**
 * A file or a set-up hook that fails before its tests counts as one failure, and so does an unhandled error. No error may look like
 * "0 failed".
 */
export class LayerReporter implements Reporter {
  readonly #file: string

  constructor(file: string) {
    this.#file = file
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0
    let failed = unhandledErrors.length
    const skips: { name: string; reason: string }[] = []
    for (const module of modules) {
      failed += module.errors().length
      for (const suite of module.children.allSuites()) failed += suite.errors().length
      for (const test of module.children.allTests()) {
        const result = test.result()
        if (result.state === 'passed') passed += 1
        else if (result.state === 'skipped')
          skips.push({ name: test.fullName, reason: result.note ?? missingReason(module, test.options.mode) })
        else failed += 1
      }
    }
    writeFileSync(this.#file, JSON.stringify({ passed, failed, skips } satisfies RunCounts))
  }
}

function missingReason(module: TestModule, mode: string): string {
  if (mode === 'todo') return 'to do'
  return module.ok() ? 'no reason given' : 'something that it needs failed first'
}
