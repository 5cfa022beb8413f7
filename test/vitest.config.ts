import { fileURLToPath } from 'node:url'
import { defineConfig, type ViteUserConfig } from 'vitest/config'
import { LayerReporter } from './support/layer-reporter.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const SOURCES = '{api,lib,gateway,operator,standalone,cli,dashboard,examples}/**'
const PROPERTY = '**/*.property.test.ts'
const CONTRACT = '**/*.contract.test.ts'
const OUTSIDE = ['**/node_modules/**', '**/dist/**', '.headgate/**']
/** Refuses what a unit test may not open, in each of their processes. */
const UNIT_FENCE = new URL('support/unit-fence.ts', import.meta.url).href
const LAB = 'test/support/integration-setup.ts'
const CHECKED_STREAMS = ['test/support/checked-streams-setup.ts']
/** Only catches hangs, also on a machine with other work, ms. */
const HANG_MS = 180_000
/** Time after which a poll counts as hung, ms. */
const POLL_MS = 60_000
/** Time after which a test of thousands of random schedules or answers counts as hung, ms. */
const SCHEDULES_MS = 900_000

type Options = NonNullable<ViteUserConfig['test']>
const project = (name: string, options: Options) => ({
  root,
  test: { name, exclude: [...OUTSIDE, PROPERTY], expect: { poll: { timeout: POLL_MS } }, ...options },
})

const countsFile = process.env.HEADGATE_COUNTS_FILE

/**
 * One project per layer. unit, contract and property need Node alone; integration and e2e start real parts (`test/run-layers.ts`
 * builds them and puts integration into a network namespace of its own first).
 */
export default defineConfig({
  test: {
    root,
    passWithNoTests: true,
    onConsoleLog: (text) => !text.startsWith('# SERVER_ERROR'), // better-auth prints each unexpected error, and tests cause many
    reporters: countsFile ? ['default', new LayerReporter(countsFile)] : ['default'],
    projects: [
      // not isolated: a third of the time; no test mocks a module or changes a global
      project('unit', {
        include: [`${SOURCES}/*.test.ts`],
        exclude: [...OUTSIDE, PROPERTY, CONTRACT],
        execArgv: ['--import', UNIT_FENCE],
        isolate: false,
        testTimeout: HANG_MS,
        hookTimeout: HANG_MS,
        maxWorkers: 4, // more than cores: some tests wait for timers
      }),
      project('contract', {
        include: ['test/contract/**/*.test.ts', `${SOURCES}/*.contract.test.ts`],
        setupFiles: CHECKED_STREAMS,
        isolate: false,
        testTimeout: HANG_MS,
        hookTimeout: HANG_MS,
        maxWorkers: 3,
      }),
      project('property', { include: [PROPERTY], exclude: OUTSIDE, setupFiles: CHECKED_STREAMS, testTimeout: SCHEDULES_MS }),
      project('integration', {
        include: ['test/integration/*.test.ts'],
        globalSetup: LAB,
        setupFiles: CHECKED_STREAMS,
        testTimeout: 180_000, // only catches hangs, on a machine that builds beside it too
        hookTimeout: 240_000,
        maxWorkers: 2,
      }),
      // after every other integration test: what the whole run left behind
      project('after-integration', {
        include: ['test/integration/last/*.test.ts'],
        globalSetup: LAB,
        setupFiles: CHECKED_STREAMS,
        testTimeout: 180_000,
        hookTimeout: 240_000,
        maxWorkers: 1,
        sequence: { groupOrder: 1 },
      }),
      project('e2e', {
        include: ['test/e2e/**/*.test.ts'],
        testTimeout: 300_000,
        hookTimeout: 600_000,
        fileParallelism: false,
      }),
    ],
  },
})
