/** A vitest reporter that counts the results of a run and writes them to a file for `test/run-layers.ts`. */
import { writeFileSync } from 'node:fs'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

/** What one vitest process counted; `reason` of a skip is the note given to `ctx.skip(note)`. */
export interface RunCounts {
  readonly passed: number
  /** One line for each: file, test, error. */
  readonly failures: readonly string[]
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

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    let passed = 0
    const failures = unhandledErrors.map((error) => `outside of every test: ${firstLine(error)}`)
    const skips: { name: string; reason: string }[] = []
    for (const module of modules) {
      const fails = (where: string, errors: readonly Pick<SerializedError, 'message'>[]): void => {
        for (const error of errors) failures.push(`${module.relativeModuleId}${where}: ${firstLine(error)}`)
      }
      fails('', module.errors())
      for (const suite of module.children.allSuites()) fails(` > ${suite.fullName}`, suite.errors())
      for (const test of module.children.allTests()) {
        const result = test.result()
        if (result.state === 'passed') passed += 1
        else if (result.state === 'skipped')
          skips.push({ name: test.fullName, reason: result.note ?? missingReason(module, test.options.mode) })
        else fails(` > ${test.fullName}`, result.errors?.slice(0, 1) ?? [{ message: 'the test did not end' }])
      }
    }
    writeFileSync(this.#file, JSON.stringify({ passed, failures, skips } satisfies RunCounts))
  }
}

function firstLine({ message }: Pick<SerializedError, 'message'>): string {
  return message.split('\n', 1)[0] ?? ''
}

function missingReason(module: TestModule, mode: string): string {
  if (mode === 'todo') return 'to do'
  return module.ok() ? 'no reason given' : 'something that it needs failed first'
}
